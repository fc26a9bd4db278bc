"""The calling side of a registration: from a URL to a peer (design §6)."""

import time
from functools import partial
from typing import Any

from pydantic import ValidationError

from peers import handshake
from peers.client import HttpClient
from peers.versions import version_problem
from schemas.mesh import MESH_VERSION, Confirm, Hello, Welcome
from server.domain.agents import check_canonical, check_unlike, same_agent
from server.domain.errors import Refusal
from server.mesh.foreign_peer import register
from server.mesh.handshake_server import (
    HandshakeParty,
    check_introduction,
    check_proof,
    check_welcome,
    enter,
    introduce,
)
from server.node import Node
from server.settings import Settings
from server.store import bans, mesh, peers
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.peers import Peer

REJOIN_SECONDS = 10.0


class JoinRefused(Exception):
    """The node at the URL can't become a peer; the message says why."""


class HandshakeClient:
    """Registers with nodes by their URLs, so that both become peers."""

    def __init__(
        self, settings: Settings, database: Database, node: Node, client: HttpClient
    ) -> None:
        self._tokens = settings.mesh_tokens
        self._database = database
        self._node = node
        self._client = client
        self._rejoined: dict[str, float] = {}

    async def join(self, url: str, invite: str | None = None) -> None:
        """Register with the node at `url`, and it with this one.

        Raises CallError if it doesn't answer, JoinRefused or Refusal if it can't be a peer.
        """
        url = url.rstrip("/")
        card = await self._client.get(f"{url}/.well-known/agent.json")
        if problem := version_problem(card):
            raise JoinRefused(f"it {problem}")
        own = _own_part(card)
        if own.get("mesh") == MESH_VERSION:
            await self._shake_hands(url, invite)
        else:
            await self._register(url, own)

    async def rejoin(self, peer: Peer) -> None:
        """Renew the keys with a peer that no longer knows this node's. Raises as `join` does."""
        now = time.monotonic()
        last = self._rejoined.get(peer.agent_id)
        if not self._tokens or (last is not None and now - last < REJOIN_SECONDS):
            return
        self._rejoined[peer.agent_id] = now
        await self._shake_hands(peer.endpoint, None)

    async def _shake_hands(self, url: str, invite: str | None) -> None:
        own = introduce(self._node)
        if invite is not None:
            secret_id, _, secret = invite.partition(".")
        elif self._tokens:
            secret = self._tokens[0]
            secret_id = handshake.token_tag(secret, own.nonce)
        else:
            raise JoinRefused("it needs a shared secret: CACP_MESH_TOKEN, or an invite")
        hello = Hello.model_construct(introduction=own, secret_id=secret_id)
        answer = await self._client.post(
            f"{url}/peers/hello", hello.model_dump(by_alias=True, mode="json")
        )
        try:
            welcome = Welcome.model_validate(answer)
        except ValidationError:
            raise JoinRefused("it answers a Hello with an invalid Welcome") from None
        other = welcome.introduction
        check_introduction(self._node, other)
        await self._database.read(lambda db: check_welcome(db, self._node, other))
        transcript = handshake.transcript(own, other)
        check_proof("answerer", secret, transcript, other, welcome)
        confirm = Confirm.model_construct(
            nonce=other.nonce,
            proof=handshake.proof(secret, "caller", transcript),
            signature=self._node.key.sign(handshake.signed("caller", transcript)),
        )
        await self._client.post(f"{url}/peers/confirm", confirm.model_dump(by_alias=True))
        pair = handshake.pair_keys(secret, transcript)
        party = HandshakeParty(other, call_with=pair.caller, called_with=pair.answerer)
        await self._database.write(lambda transaction: enter(transaction, self._node, party))

    async def _register(self, url: str, card: dict[str, Any]) -> None:
        """Register with a foreign peer, which has no mesh keys (CACP 2.0, /peers/register)."""
        agent_id, repo = card.get("agentId"), card.get("repo")
        if not isinstance(agent_id, str) or not isinstance(repo, str | None):
            raise JoinRefused("its agent card has no valid agentId and repo")
        if not self._node.takes_unkeyed_peers:
            raise JoinRefused("it has no mesh keys, and CACP_TRUST_UNKEYED_PEERS is off")
        await self._database.write(partial(self._enter_unkeyed, agent_id[:200], url, repo))
        key = await self._database.read(partial(peers.api_key, endpoint=url))
        await register(self._client, self._node, url, key)

    def _enter_unkeyed(
        self, agent_id: str, url: str, repo: str | None, transaction: Transaction
    ) -> None:
        db = transaction.connection
        if same_agent(agent_id, self._node.agent_id):
            raise JoinRefused("it is this node itself")
        if mesh.is_known_by_key(db, agent_id, self._node.agent_id):
            raise JoinRefused(f"{agent_id} has a key, and the node at this URL doesn't prove it")
        try:
            check_canonical(agent_id, "agentId")
            check_unlike(agent_id, [self._node.agent_id, *mesh.known_agents(db)])
            bans.check(db, self._node.trusted_bans, agent_id)
        except Refusal as refusal:
            raise JoinRefused(refusal.message) from None
        peers.put(db, agent_id, url, repo, "unkeyed", transaction.stamp)


def _own_part(card: Any) -> dict[str, Any]:
    """The CACP extension of an agent card; empty if it has none."""
    extensions = card.get("extensions") if isinstance(card, dict) else None
    own = extensions.get("cacp") if isinstance(extensions, dict) else None
    return own if isinstance(own, dict) else {}
