"""Merges deferred messages once they are due, and fetches projects that they need (design §7)."""

import asyncio
import time
from functools import partial

import orjson
import structlog
from pydantic import ValidationError

from peers.client import HttpClient
from peers.errors import CallError, PeerRefused, PeerUnreachable
from peers.foreign_plan import lacks_it
from server.domain.errors import RateLimited, Refusal, Unavailable
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.store import deferred, peers, projects
from server.store.database import Database
from server.store.peers import Peer
from server.util.log_once import RateLimitedLog
from server.util.loops import Turns, grouped, run_each

log = structlog.get_logger()

LOOK_SECONDS = 1.0
EXPIRE_SECONDS = 60.0


class NoPeer(Exception):
    """The sender of a message is no longer a peer of this node."""


class DeferredWorker:
    """The deferred messages of one node."""

    def __init__(
        self, database: Database, node: Node, client: HttpClient, incoming: SyncIntake
    ) -> None:
        self._database = database
        self._node = node
        self._client = client
        self._incoming = incoming
        self._notices = RateLimitedLog()
        self._expire_at = 0.0
        self._unreachable: dict[str, PeerUnreachable] = {}
        """Peers that did not answer in this look, with the error."""

    async def run(self) -> Turns:
        """Yields after each look; never ends."""
        while True:
            failed = await self._look()
            if time.monotonic() >= self._expire_at:
                await self._expire()
                self._expire_at = time.monotonic() + EXPIRE_SECONDS
            yield failed
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> Exception | None:
        """Merge what is due, of all peers concurrently. A peer that doesn't answer does not
        delay the others, and is asked once."""
        by_source: dict[str, list[deferred.DueMessage]] = {}
        for message in await self._database.read(partial(deferred.due, now=self._database.now())):
            by_source.setdefault(message.source, []).append(message)
        self._unreachable.clear()
        looks = (run_each(due, self._process_safely) for due in by_source.values())
        results = await asyncio.gather(*looks, return_exceptions=True)
        return grouped(failure for failure in results if isinstance(failure, Exception))

    async def _expire(self) -> None:
        """Drop what has waited for too long; its peer still has it, and may send it again."""
        now = self._database.clock.sure()
        expired = await self._database.write(lambda to: deferred.expire(to.connection, now))
        for peer, messages in expired.items():
            self._node.deferred_dropped["expired"] += messages
            log.warning("deferred_expired", peer=peer, messages=messages)

    async def _process_safely(self, message: deferred.DueMessage) -> None:
        try:
            await self._process(message)
        except Exception:
            # This node failed: the message is tried again, but after the others.
            await self._postpone(message)
            raise

    async def _process(self, message: deferred.DueMessage) -> None:
        """Merge a message, and drop it once it is merged or refused for good: by this node's rules,
        or because its sender has no such project."""
        try:
            await self._merge(message)
        except (CallError, Refusal, ValidationError, NoPeer) as error:
            if isinstance(error, Unavailable):
                raise
            reason = str(error)[:200]
            if is_temporary(error):
                self._notices.refused(
                    "deferred_waits", (message.source, reason), peer=message.source, reason=reason
                )
                await self._postpone(message)
                return
            log.warning(
                "deferred_refused", peer=message.source, method=message.method, reason=reason
            )
            self._node.deferred_dropped["refused"] += 1
        # A message that still has to wait was deferred again by its method: that row stays.
        await self._database.write(lambda to: deferred.drop(to.connection, message))

    async def _postpone(self, message: deferred.DueMessage) -> None:
        due = self._database.now() + deferred.AGAIN
        await self._database.write(lambda to: deferred.postpone(to.connection, message.digest, due))

    async def _merge(self, message: deferred.DueMessage) -> None:
        source = await self._database.read(partial(peers.find, agent_id=message.source))
        if source is None:
            raise NoPeer("it is no longer a peer")
        await self._fetch_project(source, orjson.loads(message.params).get("projectId"))
        call = {"method": message.method, "params": message.params}
        await self._incoming.take(source, call)

    async def _fetch_project(self, source: Peer, project_id: str | None) -> None:
        """Fetch the project that a message is for, if it is unknown here (design §7)."""
        if project_id is None:
            return
        if await self._database.read(partial(projects.known_of, ids=[project_id])):
            return
        if source.agent_id in self._unreachable:
            raise self._unreachable[source.agent_id]
        try:
            project = await self._client.call(
                source.endpoint,
                "cacp/project/get",
                {"projectId": project_id},
                key=source.secret or source.api_key,
                agent_id=self._node.agent_id,
            )
        except PeerUnreachable as error:
            self._unreachable[source.agent_id] = error
            raise
        params = {"project": project, "source_agent": source.agent_id}
        await self._incoming.take(source, {"method": "cacp/project/sync", "params": params})


def is_temporary(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, PeerRefused):
        return not lacks_it(error)
    return isinstance(error, CallError | RateLimited)
