"""What this node sends to peers of its own make: the specified calls, with what vouches beside.

One message for each entity, made anew from what the store holds when it is sent.
"""

import sqlite3
from typing import Any

import orjson

from peers.digest import Name
from schemas.mesh import Signature
from server.domain.authorship import statement
from server.domain.registers import Claim
from server.methods.base import Node
from server.store import claims, contracts, mesh, packets, peers, projects

Message = dict[str, Any]
"""{method, params} of a `*/sync` call."""


class Outbox:
    """Makes messages on one connection, and remembers whose keys they need."""

    def __init__(self, db: sqlite3.Connection, node: Node) -> None:
        self._db = db
        self._node = node
        self._signers: set[str] = set()

    def message(self, name: Name) -> Message | None:
        """The call that carries an entity; None when it is not there."""
        self._signers = set()
        make = {"project": self._project, "contract": self._contract, "context": self._context}
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
        held = claims.holder(self._db, project_id, repo.repo_id)
        every = [*([held] if held else []), *claims.lost(self._db, project_id, repo.repo_id)]
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
        body = orjson.loads(text)
        signature = self._signature("packet", name.project_id, body, body["from_agent"], kept)
        return {
            "method": "cacp/context/sync",
            "params": {
                "projectId": name.project_id,
                "packet": orjson.Fragment(text),
                "signature": signature,
            },
        }

    def _signature(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, kept: str | None
    ) -> dict[str, Any]:
        """The signature that came with it, or this node's own, made now (design §6)."""
        if kept is not None:
            given: dict[str, Any] = orjson.loads(kept)
            self._signers.add(given["node"])
            return given
        peer = peers.find(self._db, author) if author is not None else None
        value = self._node.key.sign(statement(kind, place, body))
        unkeyed = peer is not None and peer.trust == "unkeyed"
        return Signature(node=self._node.agent_id, value=value, unkeyed=unkeyed).model_dump()

    def _keys(self) -> dict[str, str]:
        """The keys of the other nodes that signed: who gets this may not know them yet."""
        found = {}
        for signer in sorted(self._signers - {self._node.agent_id}):
            key = mesh.node_key(self._db, signer)
            if key is not None:
                found[signer] = key.public_key
        return found
