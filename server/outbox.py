"""What this node sends to peers of its own make: the specified calls, with what vouches beside.

One message for each entity, made from what the store holds when it is sent, once for all peers.
"""

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson

from peers.digest import Name
from server.domain.authorship import statement
from server.domain.registers import Claim
from server.methods.base import Node
from server.store import changes, claims, contracts, files, mesh, packets, peers, projects
from server.store.database import Database

MADE_BYTES = 2 * 1024 * 1024
"""Of messages that are made at once, about."""
KEPT_BYTES = 8 * 1024 * 1024
"""Of messages that were made and may be sent to another peer, at most."""

Message = dict[str, Any]
"""{method, params} of a `*/sync` call."""


class Made(NamedTuple):
    """A message as JSON, None for what is not there, and the newest change when it was made."""

    text: bytes | None
    as_of: int

    @property
    def size(self) -> int:
        return len(self.text or b"")


class Composer:
    """Makes each message once, however many peers it goes to: what one sender has had made, the
    others find here."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node
        self._kept: dict[Name, Made] = {}
        self._bytes = 0
        self._one_at_a_time = asyncio.Lock()
        self.made = 0
        """How many messages were made."""

    async def messages(self, names: Mapping[Name, int | None]) -> list[tuple[Name, bytes | None]]:
        """The calls that carry the first of these entities, as many as fit into a few megabytes.

        Each is as it was after the change of that number, or later; as it is now for None. An
        entity that is not there has no call.
        """
        async with self._one_at_a_time:
            missing = [name for name, seq in names.items() if not self._has(name, seq)]
            made: dict[Name, Made] = {}
            if missing:
                made = await self._database.read_wide(partial(_made, self._node, missing))
                self.made += len(made)
            found: list[tuple[Name, bytes | None]] = []
            for name, seq in names.items():
                one = made.get(name) or (self._kept[name] if self._has(name, seq) else None)
                if one is None:
                    break
                found.append((name, one.text))
            for name, one in made.items():
                self._keep(name, one)
            return found

    def _has(self, name: Name, seq: int | None) -> bool:
        known = self._kept.get(name)
        return known is not None and seq is not None and known.as_of >= seq

    def _keep(self, name: Name, one: Made) -> None:
        """Keep a message, the oldest ones making room."""
        self._bytes += one.size - (self._kept.pop(name).size if name in self._kept else 0)
        self._kept[name] = one
        while self._bytes > KEPT_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= self._kept.pop(oldest).size


def _made(node: Node, names: list[Name], db: sqlite3.Connection) -> dict[Name, Made]:
    as_of = changes.newest(db)
    made = Outbox(db, node).messages(names, MADE_BYTES)
    return {name: Made(text, as_of) for name, text in made}


class Outbox:
    """Makes messages on one connection, and remembers whose keys they need."""

    def __init__(self, db: sqlite3.Connection, node: Node) -> None:
        self._db = db
        self._node = node
        self._signers: set[str] = set()
        self._unsigned: list[tuple[bytes, dict[str, Any]]] = []
        self._size = 0

    def messages(self, names: Iterable[Name], bytes_max: int) -> list[tuple[Name, bytes | None]]:
        """The calls that carry the first of these entities, as JSON, signed together.

        At least one, and no more once they hold about `bytes_max`; None for what is not there.
        """
        made: list[tuple[Name, Message | None]] = []
        size = 0
        for name in names:
            message = self._message(name)
            made.append((name, message))
            size += self._size
            if size >= bytes_max:
                break
        signed = self._node.key.sign_all([said for said, _ in self._unsigned])
        for (_, signature), by in zip(self._unsigned, signed, strict=True):
            signature |= by._asdict()
        self._unsigned = []
        return [(name, None if one is None else orjson.dumps(one)) for name, one in made]

    def _message(self, name: Name) -> Message | None:
        """The call that carries an entity, yet to be signed; None when it is not there."""
        self._signers, self._size = set(), 0
        make = {
            "project": self._project,
            "contract": self._contract,
            "context": self._context,
            "file": self._file,
            "file_request": self._file_request,
        }
        made = make[name.entity](name)
        if made is None:
            return None
        made["params"] |= {"source_agent": self._node.agent_id, "keys": self._keys()}
        return made

    def _project(self, name: Name) -> Message | None:
        header = projects.header(self._db, name.project_id)
        if header is None:
            return None
        repos = projects.repos(self._db, name.project_id)
        whole = projects.bare(header, repos)
        registers = {
            "name": header.name,
            "objective": header.objective,
            "status": header.status,
            "agreement_policy": header.agreement_policy,
            "created_at": header.created_at,
            "stamp": header.stamp,
            "repos": [self._repo(name.project_id, repo) for repo in repos],
        }
        return {
            "method": "cacp/project/sync",
            "params": {"project": whole, "registers": registers},
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
            "claims": [self._claim(repo.repo_id, claim) for claim in every],
        }

    def _claim(self, repo_id: str, claim: Claim) -> dict[str, Any]:
        body = claim.body()
        signature = self._signature("claim", repo_id, body, claim.agent_id, claim.signature)
        return {**body, "signature": signature}

    def _contract(self, name: Name) -> Message | None:
        header = contracts.header_of(self._db, name.project_id, name.entity_id)
        if header is None:
            return None
        document = contracts.document(self._db, name.project_id, name.entity_id, history=True)
        facts = []
        for text, kept in contracts.signed_facts(self._db, name.entity_id):
            body = orjson.loads(text)
            # A version's content stands in the contract as well.
            self._size += 2 * len(text)
            author = body.get("agent_id")
            signature = self._signature("fact", name.entity_id, body, author, kept)
            facts.append({"fact": orjson.Fragment(text), "signature": signature})
        return {
            "method": "cacp/contract/sync",
            "params": {
                "projectId": name.project_id,
                "contract": document,
                "facts": facts,
                "createdAt": header.created_at,
            },
        }

    def _context(self, name: Name) -> Message | None:
        found = packets.signed(self._db, name.project_id, name.entity_id)
        if found is None:
            return None
        text, kept = found
        # What is signed names each member of a packet, absent or not.
        body = {"reply_to": None, **orjson.loads(text)}
        self._size += len(text)
        signature = self._signature("packet", name.project_id, body, body["from_agent"], kept)
        return {
            "method": "cacp/context/sync",
            "params": {
                "projectId": name.project_id,
                "packet": orjson.Fragment(text),
                "signature": signature,
            },
        }

    def _file(self, name: Name) -> Message | None:
        """What a file is; its content is fetched when somebody asks for it."""
        found = files.find(self._db, name.project_id, name.entity_id)
        if found is None:
            return None
        return self._signed_file("cacp/file/sync", "file", name, found)

    def _file_request(self, name: Name) -> Message | None:
        found = files.request(self._db, name.project_id, name.entity_id)
        if found is None:
            return None
        return self._signed_file("cacp/file/syncRequest", "request", name, found)

    def _signed_file(
        self, method: str, member: str, name: Name, found: files.File | files.Request
    ) -> Message:
        body = found.fact().model_dump()
        self._size += len(orjson.dumps(body))
        signature = self._signature(
            name.entity, name.project_id, body, found.from_agent, found.signature
        )
        params = {"projectId": name.project_id, member: body, "signature": signature}
        return {"method": method, "params": params}

    def _signature(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, kept: str | None
    ) -> dict[str, Any]:
        """The signature that came with it, or a place for this node's own (design §6)."""
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

    def _keys(self) -> dict[str, str]:
        """The keys of the other nodes that signed: who gets this may not know them yet."""
        found = {}
        for signer in sorted(self._signers - {self._node.agent_id}):
            key = mesh.node_key(self._db, signer)
            if key is not None:
                found[signer] = key.public_key
        return found
