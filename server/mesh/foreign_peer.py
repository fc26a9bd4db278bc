"""The calls to one foreign peer: registering with it, and reading what it holds (design §8)."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from peers.client import HttpClient
from peers.errors import CallError, PeerRefused, TooLong
from peers.foreign_plan import Document, Shown, contract_of, lacks_it, listed_of, shown_of
from peers.versions import version_problem
from schemas.errors import ErrorCode
from server.node import Node
from server.store.peers import Peer

log = structlog.get_logger()

NOT_NOW = (429, 502, 503, 504)
OF_ALL_CALLS = (401, 403, *NOT_NOW)
"""HTTP statuses that are about this node or the peer, not about what was sent."""

T = TypeVar("T")


class NotServed(CallError):
    """The peer serves this node no calls, now or ever, whatever is asked for."""


async def register(client: HttpClient, node: Node, endpoint: str, key: str | None) -> None:
    """Register this node with a foreign peer (CACP 2.0, /peers/register). Raises CallError."""
    url = f"{endpoint}/peers/register"
    await client.post(url, _me(node), key=key, agent_id=node.agent_id)


def _me(node: Node) -> Document:
    return {"agentId": node.agent_id, "endpoint": node.url, "repoName": node.repo}


class ForeignPeer:
    """Each call raises CallError: PeerRefused for this call alone, NotServed for any call."""

    def __init__(self, client: HttpClient, node: Node, peer: Peer) -> None:
        self._client = client
        self._node = node
        self._peer = peer
        self._unknown: set[str] = set()
        self.is_met = False
        """Whether this node is registered with the peer, as far as is known."""

    async def call(self, method: str, params: Document) -> Any:
        """The result of a call. A response that is too long counts as PeerRefused: it concerns only
        what was asked for."""
        try:
            return await self._client.call(
                self._peer.endpoint,
                method,
                params,
                key=self._peer.api_key,
                agent_id=self._node.agent_id,
            )
        except TooLong as error:
            raise PeerRefused(str(error), status=200) from None
        except PeerRefused as refused:
            if refused.status in OF_ALL_CALLS:
                raise NotServed(str(refused)) from None
            if refused.code == ErrorCode.METHOD_NOT_FOUND:
                self._unknown.add(method)
            raise

    async def meet(self) -> None:
        """Check that the peer speaks this version of CACP, and register with it: it may have
        forgotten this node, or dropped it. If it doesn't support registration,
        announce this node."""
        self._unknown.clear()
        try:
            card = await self._client.get(f"{self._peer.endpoint}/.well-known/agent.json")
        except PeerRefused:
            card = None
        if problem := version_problem(card):
            raise PeerRefused(problem, status=200)
        try:
            await register(self._client, self._node, self._peer.endpoint, self._peer.api_key)
            self.is_met = True
            return
        except PeerRefused as refused:
            if refused.status in NOT_NOW:
                raise
            log.debug("register_refused", peer=self._peer.agent_id, error=str(refused))
        try:
            await self.call("cacp/peer/announce", _me(self._node))
        except (PeerRefused, NotServed) as refused:
            log.debug("announce_refused", peer=self._peer.agent_id, error=str(refused))
        self.is_met = True

    def knows(self, method: str) -> bool:
        """False once the peer has answered, since it was met, that it lacks the method."""
        return method not in self._unknown

    async def project(self, project_id: str) -> Shown | None:
        """The project as the peer holds it; None when it has none."""
        given = {"projectId": project_id}
        return await self._held("cacp/project/get", given, partial(shown_of, project_id=project_id))

    async def contract(self, project_id: str, contract_id: str) -> Document | None:
        """The contract as the peer holds it; None when it has none, or no such project."""
        given = {"projectId": project_id, "contractId": contract_id}
        checked = partial(contract_of, contract_id=contract_id)
        return await self._held("cacp/contract/get", given, checked)

    async def listed(self) -> list[str]:
        """The ids of the projects that the peer lists; none if it refuses to."""
        try:
            return listed_of(await self.call("cacp/project/list", {}))
        except PeerRefused as refused:
            log.debug("list_refused", peer=self._peer.agent_id, error=str(refused))
            return []

    async def _held(self, method: str, given: Document, checked: Callable[[Any], T]) -> T | None:
        """The result of a call as `checked` returns it; None if the peer has nothing of that id."""
        try:
            return checked(await self.call(method, given))
        except PeerRefused as refused:
            if lacks_it(refused):
                return None
            raise
        except ValueError as error:
            raise PeerRefused(str(error), status=200) from None
