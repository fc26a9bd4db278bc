"""The calls to one foreign peer: who this node is, and what it holds (CACP 2.0; design §8)."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from peers.client import Client
from peers.errors import CallError, Refused, TooLong
from peers.foreign_plan import Document, Shown, contract_of, lacks_it, listed_of, shown_of
from peers.versions import version_problem
from schemas.errors import ErrorCode
from server.node import Node
from server.store.peers import Peer

log = structlog.get_logger()

NOT_NOW = (429, 502, 503, 504)
OF_ALL_CALLS = (401, 403, *NOT_NOW)
"""HTTP statuses that say nothing of what was sent, but of this node or the peer."""

T = TypeVar("T")


class NotServed(CallError):
    """It serves this node nothing, now or at all: whatever was asked for, this is not about it."""


async def register(client: Client, node: Node, endpoint: str, key: str | None) -> None:
    """Register this node with a foreign peer (CACP 2.0, /peers/register). Raises CallError."""
    url = f"{endpoint}/peers/register"
    await client.post(url, _me(node), key=key, agent_id=node.agent_id)


def _me(node: Node) -> Document:
    return {"agentId": node.agent_id, "endpoint": node.url, "repoName": node.repo}


class ForeignPeer:
    """Each call raises CallError: Refused for what was asked, NotServed whatever it was."""

    def __init__(self, client: Client, node: Node, peer: Peer) -> None:
        self._client = client
        self._node = node
        self._peer = peer
        self._unknown: set[str] = set()

    async def call(self, method: str, params: Document) -> Any:
        """The result of a call. An answer that is too long is a fault of what was asked for, and
        not of the peer."""
        try:
            return await self._client.call(
                self._peer.endpoint,
                method,
                params,
                key=self._peer.api_key,
                agent_id=self._node.agent_id,
            )
        except TooLong as error:
            raise Refused(str(error), status=200) from None
        except Refused as refused:
            if refused.status in OF_ALL_CALLS:
                raise NotServed(str(refused)) from None
            if refused.code == ErrorCode.METHOD_NOT_FOUND:
                self._unknown.add(method)
            raise

    async def meet(self) -> None:
        """See that it speaks this version of CACP, and register with it: it may have forgotten this
        node, or given it up. To one that takes no registrations it is announced."""
        self._unknown.clear()
        try:
            card = await self._client.get(f"{self._peer.endpoint}/.well-known/agent.json")
        except Refused:
            card = None
        if problem := version_problem(card):
            raise Refused(problem, status=200)
        try:
            await register(self._client, self._node, self._peer.endpoint, self._peer.api_key)
            return
        except Refused as refused:
            if refused.status in NOT_NOW:
                raise
            log.debug("register_refused", peer=self._peer.agent_id, error=str(refused))
        try:
            await self.call("cacp/peer/announce", _me(self._node))
        except (Refused, NotServed) as refused:
            log.debug("announce_refused", peer=self._peer.agent_id, error=str(refused))

    def knows(self, method: str) -> bool:
        """False once it has answered, since it was met, that it has no such method."""
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
        """The ids of the projects that it lists; none when it refuses to."""
        try:
            return listed_of(await self.call("cacp/project/list", {}))
        except Refused as refused:
            log.debug("list_refused", peer=self._peer.agent_id, error=str(refused))
            return []

    async def _held(self, method: str, given: Document, checked: Callable[[Any], T]) -> T | None:
        """What the peer answers, as `checked` takes it; None when it has nothing of that id."""
        try:
            return checked(await self.call(method, given))
        except Refused as refused:
            if lacks_it(refused):
                return None
            raise
        except ValueError as error:
            raise Refused(str(error), status=200) from None
