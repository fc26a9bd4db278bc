"""Makes the messages for mesh peers: the specified calls, with facts, registers and signatures.

An entity is one message, made from what the store holds when it is sent, once for all peers. A
large project or contract is several messages, each of which can be merged alone. An entity whose
messages can't be made is reported with the reason, and holds up no other.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson

from peers.digest import Name
from server.domain.authorship import statement
from server.domain.errors import Refusal
from server.domain.registers import RepoClaim
from server.node import Node
from server.store import (
    changes,
    claims,
    context_packets,
    contracts,
    files,
    lifecycle,
    mesh,
    peers,
    projects,
)
from server.store.connection import Connection, is_of_driver
from server.store.database import Database
from server.util.log_once import RateLimitedLog

MADE_BYTES = 2 * 1024 * 1024
"""Of all messages that are made at once, about."""
PIECE_BYTES = 512 * 1024
"""Of one message, about, unless a single fact is larger: far below the limit of any node."""
BESIDE = 1_000
"""Bytes of a fact's or repo's names and signatures, about, so that a message has some hundreds."""
KEPT_BYTES = 8 * 1024 * 1024
"""Of messages that are kept for the other peers, at most."""

_notices = RateLimitedLog()
T = TypeVar("T")
Message = dict[str, Any]
"""{method, params} of a `*/sync` call."""


class BuiltMessages(NamedTuple):
    """The messages of an entity, as JSON; none if it doesn't exist or can't be sent."""

    texts: tuple[bytes, ...]
    problem: str | None = None
    """Why it can't be sent."""


class CachedMessages(NamedTuple):
    """The messages of an entity, and the newest change when they were made."""

    made: BuiltMessages
    as_of: int

    @property
    def size(self) -> int:
        return sum(map(len, self.made.texts))


class Composer:
    """Makes each message once, and keeps it for the senders to the other peers."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node
        self._kept: dict[Name, CachedMessages] = {}
        self._bytes = 0
        self._one_at_a_time = asyncio.Lock()
        self.made = 0
        """The number of entities for which messages were made."""

    async def messages(self, names: Mapping[Name, int | None]) -> list[tuple[Name, BuiltMessages]]:
        """The messages of the first of these entities, as many as fit into a few megabytes.

        Each entity is as it was after the change of its number or later; for None, as it is now.
        """
        async with self._one_at_a_time:
            missing = [name for name, seq in names.items() if not self._has(name, seq)]
            made: dict[Name, CachedMessages] = {}
            if missing:
                made = await self._database.read_wide(partial(_made, self._node, missing))
                self.made += len(made)
            result: list[tuple[Name, BuiltMessages]] = []
            for name, seq in names.items():
                cached = made.get(name) or (self._kept[name] if self._has(name, seq) else None)
                if cached is None:
                    break
                result.append((name, cached.made))
            for name, cached in made.items():
                self._keep(name, cached)
            return result

    def _has(self, name: Name, seq: int | None) -> bool:
        known = self._kept.get(name)
        return known is not None and seq is not None and known.as_of >= seq

    def _keep(self, name: Name, messages: CachedMessages) -> None:
        """Keep messages, dropping the oldest ones for them. A problem is not kept."""
        if messages.made.problem is not None:
            return
        self._bytes += messages.size - (self._kept.pop(name).size if name in self._kept else 0)
        self._kept[name] = messages
        while self._bytes > KEPT_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= self._kept.pop(oldest).size


def _made(node: Node, names: list[Name], db: Connection) -> dict[Name, CachedMessages]:
    as_of = changes.newest(db)
    made = MessageBuilder(db, node).messages(names, MADE_BYTES)
    return {name: CachedMessages(messages, as_of) for name, messages in made}


class MessageBuilder:
    """Makes messages on one connection, and collects which keys they need."""

    def __init__(self, db: Connection, node: Node) -> None:
        self._db = db
        self._node = node
        self._signers: set[str] = set()
        self._unsigned: list[tuple[bytes, dict[str, Any]]] = []
        self._size = 0

    def messages(self, names: Iterable[Name], bytes_max: int) -> list[tuple[Name, BuiltMessages]]:
        """The messages of the first of these entities, as JSON, signed together: of at least one
        entity, and of no more once they have about `bytes_max`."""
        made: list[tuple[Name, list[Message], str | None]] = []
        size = 0
        for name in names:
            begun = len(self._unsigned)
            try:
                made.append((name, self._messages(name), None))
            except Exception as error:
                if is_of_driver(error):
                    raise
                del self._unsigned[begun:]
                made.append((name, [], _problem(name, error)))
            size += self._size
            if size >= bytes_max:
                break
        signed = self._node.key.sign_all([statement for statement, _ in self._unsigned])
        for (_, signature), by in zip(self._unsigned, signed, strict=True):
            signature |= by._asdict()
        self._unsigned = []
        return [
            (name, BuiltMessages(tuple(map(orjson.dumps, messages)), problem))
            for name, messages, problem in made
        ]

    def _messages(self, name: Name) -> list[Message]:
        """The messages of an entity, yet to be signed; none if it doesn't exist."""
        self._signers, self._size = set(), 0
        make = {
            "project": self._project,
            "contract": self._contract,
            "receipt": self._receipts,
            "context": self._context,
            "file": self._file,
            "file_request": self._file_request,
        }
        made = make[name.entity](name)
        by = {"source_agent": self._node.agent_id, "keys": self._keys()}
        for message in made:
            message["params"] |= by
        return made

    def _project(self, name: Name) -> list[Message]:
        header = projects.header(self._db, name.project_id)
        if header is None:
            return self._state_of_project(name.project_id)
        repos = projects.repos(self._db, name.project_id)
        # A repo is listed in the project as well as in its registers.
        sized = [(repo, BESIDE + 2 * len(repo.relevant_paths)) for repo in repos]
        self._size = sum(size for _, size in sized)
        parts = [self._part_of_project(header, part) for part in _parts(sized)]
        return parts + self._state_of_project(name.project_id)

    def _state_of_project(self, project_id: str) -> list[Message]:
        """The lifecycle and the releases of a project; no message if there are none."""
        register = lifecycle.find(self._db, project_id)
        releases = claims.stated_in(self._db, project_id)
        if register is None and not releases:
            return []
        state: dict[str, Any] = {"project_id": project_id}
        if register is not None:
            state["lifecycle"] = self._registered(
                "lifecycle", project_id, register.body(), register.signature
            )
        state["releases"] = [
            self._registered("release", repo_id, release.body(), release.signature)
            | {"repo_id": repo_id}
            for repo_id, (_, release) in releases
        ]
        return [{"method": "cacp/project/syncState", "params": {"state": state}}]

    def _registered(
        self, kind: str, place: str, body: dict[str, Any], kept: str | None
    ) -> dict[str, Any]:
        return {**body, "signature": self._signature(kind, place, body, None, kept)}

    def _part_of_project(
        self, header: projects.ProjectHeader, repos: list[projects.Repo]
    ) -> Message:
        body, project_id, kept = header.body(), header.project_id, header.signature
        signature = self._said("header", project_id, body, None, kept)
        every = [self._repo(project_id, repo) for repo in repos]
        registers = {**body, "signature": signature, "repos": every}
        return {
            "method": "cacp/project/sync",
            "params": {"project": projects.bare(header, repos), "registers": registers},
        }

    def _repo(self, project_id: str, repo: projects.Repo) -> dict[str, Any]:
        every = claims.every(self._db, project_id, repo.repo_id)
        return {
            "repo_id": repo.repo_id,
            "name": repo.name,
            "role": repo.role,
            "language": repo.language,
            "relevant_paths": orjson.Fragment(repo.relevant_paths),
            "url": repo.url,
            "stamp": repo.stamp,
            "signature": self._said("repo", project_id, repo.body(), None, repo.signature),
            "claims": [self._claim(repo.repo_id, claim) for claim in every],
        }

    def _claim(self, repo_id: str, claim: RepoClaim) -> dict[str, Any]:
        body = claim.body()
        signature = self._signature("claim", repo_id, body, claim.agent_id, claim.signature)
        return {**body, "signature": signature}

    def _contract(self, name: Name) -> list[Message]:
        header = contracts.header_of(self._db, name.project_id, name.entity_id)
        if header is None:
            return []
        versions: list[tuple[dict[str, Any], int]] = []
        others: list[tuple[dict[str, Any], int]] = []
        begun: dict[int, str] = {}
        for text, kept in contracts.signed_facts(self._db, name.entity_id):
            body = orjson.loads(text)
            if body["kind"] == "receipt":
                continue
            author = body.get("agent_id")
            signature = self._signature("fact", name.entity_id, body, author, kept)
            fact = {"fact": orjson.Fragment(text), "signature": signature}
            if body["kind"] == "version":
                begun[body["version"]] = body["agent_id"]
            (versions if body["kind"] == "version" else others).append((fact, BESIDE + len(text)))
            self._size += len(text)
        # A foreign peer's contract has the name that the peer gave it, so it counts as the author.
        _, author = min(begun.items(), default=(0, None))
        by = self._said("contract", name.entity_id, header.body(), author, header.signature)
        # A version comes before the facts about it.
        parts = list(_parts(versions + others))
        load = contracts.document if len(parts) == 1 else contracts.outline
        document = load(self._db, name.project_id, name.entity_id)
        return [
            {
                "method": "cacp/contract/sync",
                "params": {
                    "projectId": name.project_id,
                    "contract": document,
                    "facts": part,
                    "createdAt": header.created_at,
                    "headerSignature": by,
                },
            }
            for part in parts
        ]

    def _receipts(self, name: Name) -> list[Message]:
        """The receipts of a contract: apart from it, because older releases don't know them."""
        sized: list[tuple[dict[str, Any], int]] = []
        for text, kept in contracts.signed_facts(self._db, name.entity_id):
            body = orjson.loads(text)
            if body["kind"] != "receipt":
                continue
            signature = self._signature("fact", name.entity_id, body, None, kept)
            sized.append(({"fact": orjson.Fragment(text), "signature": signature}, len(text)))
            self._size += len(text)
        return [
            {
                "method": "cacp/receipt/sync",
                "params": {
                    "projectId": name.project_id,
                    "receipts": {"contract_id": name.entity_id, "facts": part},
                },
            }
            for part in (_parts(sized) if sized else ())
        ]

    def _context(self, name: Name) -> list[Message]:
        packet = context_packets.signed(self._db, name.project_id, name.entity_id)
        if packet is None:
            return []
        text, kept = packet
        # The signature covers every member of a packet, even an absent one.
        body = {"reply_to": None, **orjson.loads(text)}
        self._size += len(text)
        signature = self._signature("packet", name.project_id, body, body["from_agent"], kept)
        params = {
            "projectId": name.project_id,
            "packet": orjson.Fragment(text),
            "signature": signature,
        }
        return [{"method": "cacp/context/sync", "params": params}]

    def _file(self, name: Name) -> list[Message]:
        """A file without its content, which is fetched when a caller asks for it."""
        file = files.find(self._db, name.project_id, name.entity_id)
        if file is None:
            return []
        return self._signed_file("cacp/file/sync", "file", name, file)

    def _file_request(self, name: Name) -> list[Message]:
        request = files.request(self._db, name.project_id, name.entity_id)
        if request is None:
            return []
        return self._signed_file("cacp/file/syncRequest", "request", name, request)

    def _signed_file(
        self, method: str, member: str, name: Name, file: files.File | files.FileRequestRow
    ) -> list[Message]:
        body = file.fact().model_dump()
        self._size += len(orjson.dumps(body))
        signature = self._signature(
            name.entity, name.project_id, body, file.from_agent, file.signature
        )
        params = {"projectId": name.project_id, member: body, "signature": signature}
        return [{"method": method, "params": params}]

    def _signature(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, kept: str | None
    ) -> dict[str, Any]:
        """The signature that `body` came with, or a place for this node's own (design §7)."""
        if kept is not None:
            given: dict[str, Any] = orjson.loads(kept)
            self._signers.add(given["node"])
            return given
        own = author is None or author == self._node.agent_id
        peer = None if own or author is None else peers.find(self._db, author)
        unkeyed = peer is not None and peer.trust == "unkeyed"
        signature = {"node": self._node.agent_id, "unkeyed": unkeyed}
        self._unsigned.append((statement(kind, place, body), signature))
        return signature

    def _said(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, kept: str | None
    ) -> dict[str, Any] | None:
        """The signature of a register; None if no node has signed it."""
        return None if kept == "" else self._signature(kind, place, body, author, kept)

    def _keys(self) -> dict[str, str]:
        """The keys of the other nodes that signed: the recipient may not know them yet."""
        keys = {}
        for signer in sorted(self._signers - {self._node.agent_id}):
            key = mesh.node_key(self._db, signer)
            if key is not None:
                keys[signer] = key.public_key
        return keys


def _parts(sized: Iterable[tuple[T, int]]) -> Iterator[list[T]]:
    """The items of each message; a single empty part if there are none."""
    part: list[T] = []
    size = 0
    for item, bytes_ in sized:
        if part and size + bytes_ > PIECE_BYTES:
            yield part
            part, size = [], 0
        part.append(item)
        size += bytes_
    yield part


def _problem(name: Name, error: Exception) -> str:
    """Why an entity can't be sent; the log has the details."""
    if isinstance(error, Refusal):
        return f"can't be signed: {error.message}"
    about = {"entity": name.entity, "id": name.entity_id}
    _notices.refused("not_composed", (name, repr(error)), **about, exc_info=error)
    return f"can't be composed: {type(error).__name__}, see not_composed in the log"
