"""What this node sends to mesh peers: the specified calls, with what vouches beside.

One message for each entity, made from what the store holds when it is sent, once for all peers. A
large project or contract goes in several, of which each can be taken alone, as a merge is a join.
What can't be made is told with the reason, and holds up nothing else.
"""

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson

from peers.digest import Name
from server.domain.authorship import statement
from server.domain.errors import Refusal
from server.domain.registers import RepoClaim
from server.node import Node
from server.store import changes, claims, context_packets, contracts, files, mesh, peers, projects
from server.store.database import Database
from server.util.log_once import LogOnce

MADE_BYTES = 2 * 1024 * 1024
"""Of messages that are made at once, about."""
PIECE_BYTES = 512 * 1024
"""Of one message, about, unless a single fact is larger: far below what any node takes."""
BESIDE = 1_000
"""Bytes of the names and signatures of a fact or repo, about: so a message has some hundreds."""
KEPT_BYTES = 8 * 1024 * 1024
"""Of messages that were made and may be sent to another peer, at most."""

_notices = LogOnce()
T = TypeVar("T")
Message = dict[str, Any]
"""{method, params} of a `*/sync` call."""


class BuiltMessages(NamedTuple):
    """The messages that carry an entity, as JSON: none for what is not there, or can't be sent."""

    texts: tuple[bytes, ...]
    problem: str | None = None
    """Why it can't be sent."""


class CachedMessages(NamedTuple):
    """What was made, and the newest change then."""

    made: BuiltMessages
    as_of: int

    @property
    def size(self) -> int:
        return sum(map(len, self.made.texts))


class Composer:
    """Makes each message once, however many peers it goes to: what one sender has had made, the
    others find here."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node
        self._kept: dict[Name, CachedMessages] = {}
        self._bytes = 0
        self._one_at_a_time = asyncio.Lock()
        self.made = 0
        """For how many entities messages were made."""

    async def messages(self, names: Mapping[Name, int | None]) -> list[tuple[Name, BuiltMessages]]:
        """The calls that carry the first of these entities, as many as fit into a few megabytes.

        Each is as it was after the change of that number, or later; as it is now for None.
        """
        async with self._one_at_a_time:
            missing = [name for name, seq in names.items() if not self._has(name, seq)]
            made: dict[Name, CachedMessages] = {}
            if missing:
                made = await self._database.read_wide(partial(_made, self._node, missing))
                self.made += len(made)
            found: list[tuple[Name, BuiltMessages]] = []
            for name, seq in names.items():
                one = made.get(name) or (self._kept[name] if self._has(name, seq) else None)
                if one is None:
                    break
                found.append((name, one.made))
            for name, one in made.items():
                self._keep(name, one)
            return found

    def _has(self, name: Name, seq: int | None) -> bool:
        known = self._kept.get(name)
        return known is not None and seq is not None and known.as_of >= seq

    def _keep(self, name: Name, one: CachedMessages) -> None:
        """Keep messages, the oldest ones making room. What can't be made is tried each time."""
        if one.made.problem is not None:
            return
        self._bytes += one.size - (self._kept.pop(name).size if name in self._kept else 0)
        self._kept[name] = one
        while self._bytes > KEPT_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= self._kept.pop(oldest).size


def _made(node: Node, names: list[Name], db: sqlite3.Connection) -> dict[Name, CachedMessages]:
    as_of = changes.newest(db)
    made = MessageBuilder(db, node).messages(names, MADE_BYTES)
    return {name: CachedMessages(one, as_of) for name, one in made}


class MessageBuilder:
    """Makes messages on one connection, and remembers whose keys they need."""

    def __init__(self, db: sqlite3.Connection, node: Node) -> None:
        self._db = db
        self._node = node
        self._signers: set[str] = set()
        self._unsigned: list[tuple[bytes, dict[str, Any]]] = []
        self._size = 0

    def messages(self, names: Iterable[Name], bytes_max: int) -> list[tuple[Name, BuiltMessages]]:
        """The calls that carry the first of these entities, as JSON, signed together.

        Those of one at least, and no more once they hold about `bytes_max`.
        """
        made: list[tuple[Name, list[Message], str | None]] = []
        size = 0
        for name in names:
            begun = len(self._unsigned)
            try:
                made.append((name, self._messages(name), None))
            except sqlite3.Error:
                raise
            except Exception as error:
                del self._unsigned[begun:]
                made.append((name, [], _problem(name, error)))
            size += self._size
            if size >= bytes_max:
                break
        signed = self._node.key.sign_all([said for said, _ in self._unsigned])
        for (_, signature), by in zip(self._unsigned, signed, strict=True):
            signature |= by._asdict()
        self._unsigned = []
        return [
            (name, BuiltMessages(tuple(map(orjson.dumps, messages)), problem))
            for name, messages, problem in made
        ]

    def _messages(self, name: Name) -> list[Message]:
        """The calls that carry an entity, yet to be signed; none when it is not there."""
        self._signers, self._size = set(), 0
        make = {
            "project": self._project,
            "contract": self._contract,
            "context": self._context,
            "file": self._file,
            "file_request": self._file_request,
        }
        made = make[name.entity](name)
        by = {"source_agent": self._node.agent_id, "keys": self._keys()}
        for one in made:
            one["params"] |= by
        return made

    def _project(self, name: Name) -> list[Message]:
        header = projects.header(self._db, name.project_id)
        if header is None:
            return []
        repos = projects.repos(self._db, name.project_id)
        # A repo stands in the project as well as in its registers.
        sized = [(repo, BESIDE + 2 * len(repo.relevant_paths)) for repo in repos]
        self._size = sum(size for _, size in sized)
        return [self._part_of_project(header, part) for part in _parts(sized)]

    def _part_of_project(
        self, header: projects.ProjectHeader, repos: list[projects.Repo]
    ) -> Message:
        said, project_id, kept = header.body(), header.project_id, header.signature
        signature = self._said("header", project_id, said, None, kept)
        every = [self._repo(project_id, repo) for repo in repos]
        registers = {**said, "signature": signature, "repos": every}
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
            author = body.get("agent_id")
            signature = self._signature("fact", name.entity_id, body, author, kept)
            fact = {"fact": orjson.Fragment(text), "signature": signature}
            if body["kind"] == "version":
                begun[body["version"]] = body["agent_id"]
            (versions if body["kind"] == "version" else others).append((fact, BESIDE + len(text)))
            self._size += len(text)
        # A contract that was heard of a foreign peer is called what that one calls it.
        _, author = min(begun.items(), default=(0, None))
        by = self._said("contract", name.entity_id, header.body(), author, header.signature)
        # What is said of a version comes after it.
        parts = list(_parts(versions + others))
        said = contracts.document if len(parts) == 1 else contracts.outline
        document = said(self._db, name.project_id, name.entity_id)
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

    def _context(self, name: Name) -> list[Message]:
        found = context_packets.signed(self._db, name.project_id, name.entity_id)
        if found is None:
            return []
        text, kept = found
        # What is signed names each member of a packet, absent or not.
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
        """What a file is; its content is fetched when somebody asks for it."""
        found = files.find(self._db, name.project_id, name.entity_id)
        if found is None:
            return []
        return self._signed_file("cacp/file/sync", "file", name, found)

    def _file_request(self, name: Name) -> list[Message]:
        found = files.request(self._db, name.project_id, name.entity_id)
        if found is None:
            return []
        return self._signed_file("cacp/file/syncRequest", "request", name, found)

    def _signed_file(
        self, method: str, member: str, name: Name, found: files.File | files.FileRequest
    ) -> list[Message]:
        body = found.fact().model_dump()
        self._size += len(orjson.dumps(body))
        signature = self._signature(
            name.entity, name.project_id, body, found.from_agent, found.signature
        )
        params = {"projectId": name.project_id, member: body, "signature": signature}
        return [{"method": method, "params": params}]

    def _signature(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, kept: str | None
    ) -> dict[str, Any]:
        """The signature that came with it, or a place for this node's own (design §7)."""
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
        """The signature of a register; None where nobody has signed it."""
        return None if kept == "" else self._signature(kind, place, body, author, kept)

    def _keys(self) -> dict[str, str]:
        """The keys of the other nodes that signed: who gets this may not know them yet."""
        found = {}
        for signer in sorted(self._signers - {self._node.agent_id}):
            key = mesh.node_key(self._db, signer)
            if key is not None:
                found[signer] = key.public_key
        return found


def _parts(sized: Iterable[tuple[T, int]]) -> Iterator[list[T]]:
    """What goes into one message each; a single empty part for nothing."""
    part: list[T] = []
    size = 0
    for one, bytes_ in sized:
        if part and size + bytes_ > PIECE_BYTES:
            yield part
            part, size = [], 0
        part.append(one)
        size += bytes_
    yield part


def _problem(name: Name, error: Exception) -> str:
    """Why an entity can't be sent, in words; the log has what they leave out."""
    if isinstance(error, Refusal):
        return f"can't be signed: {error.message}"
    about = {"entity": name.entity, "id": name.entity_id}
    _notices.refused("not_composed", (name, repr(error)), **about, exc_info=error)
    return f"can't be composed: {type(error).__name__}, see not_composed in the log"
