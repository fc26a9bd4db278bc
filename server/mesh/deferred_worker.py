"""Takes in what was deferred: what is due by now, and what waits for its project (design §7)."""

import asyncio
import time
from functools import partial

import orjson
import structlog
from pydantic import ValidationError

from peers.client import Client
from peers.errors import CallError, Refused, Unreachable
from peers.foreign_plan import lacks_it
from server.domain.errors import RateLimited, Refusal, Unavailable
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.store import deferred, peers, projects
from server.store.database import Database
from server.store.peers import Peer
from server.util.log_once import LogOnce
from server.util.loops import Turns, each, together

log = structlog.get_logger()

LOOK_SECONDS = 1.0
EXPIRE_SECONDS = 60.0


class NoPeer(Exception):
    """Who sent a message is no peer of this node any more."""


class DeferredWorker:
    """The deferred messages of one node."""

    def __init__(
        self, database: Database, node: Node, client: Client, incoming: SyncIntake
    ) -> None:
        self._database = database
        self._node = node
        self._client = client
        self._incoming = incoming
        self._notices = LogOnce()
        self._expire_at = 0.0
        self._silent: dict[str, Unreachable] = {}
        """Peers that gave no answer in this look, and how."""

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
        """See to what is due, of all peers at once: one that doesn't answer holds up no other, and
        is asked once."""
        by_source: dict[str, list[deferred.DueMessage]] = {}
        for one in self._database.read(partial(deferred.due, now=self._database.now())):
            by_source.setdefault(one.source, []).append(one)
        self._silent.clear()
        looks = (each(due, self._see_to) for due in by_source.values())
        found = await asyncio.gather(*looks, return_exceptions=True)
        return together(one for one in found if isinstance(one, Exception))

    async def _expire(self) -> None:
        """Let go of what has waited for too long; its peer still has it, and may send it again."""
        now = self._database.clock.sure()
        expired = await self._database.write(lambda to: deferred.expire(to.connection, now))
        for peer, messages in expired.items():
            self._node.deferred_dropped["expired"] += messages
            log.warning("deferred_expired", peer=peer, messages=messages)

    async def _see_to(self, one: deferred.DueMessage) -> None:
        try:
            await self._take(one)
        except Exception:
            # A fault of this node's: it is tried again, but not before the others.
            await self._postpone(one)
            raise

    async def _take(self, one: deferred.DueMessage) -> None:
        """Dropped only when it is taken, or refused for good: by our own rules, or because who
        sent it has no such project."""
        try:
            await self._taken(one)
        except (CallError, Refusal, ValidationError, NoPeer) as error:
            if isinstance(error, Unavailable):
                raise
            reason = str(error)[:200]
            if may_pass(error):
                self._notices.refused(
                    "deferred_waits", (one.source, reason), peer=one.source, reason=reason
                )
                await self._postpone(one)
                return
            log.warning("deferred_refused", peer=one.source, method=one.method, reason=reason)
            self._node.deferred_dropped["refused"] += 1
        # What still waits was deferred anew by its method, and stays.
        await self._database.write(lambda to: deferred.drop(to.connection, one))

    async def _postpone(self, one: deferred.DueMessage) -> None:
        due = self._database.now() + deferred.AGAIN
        await self._database.write(lambda to: deferred.postpone(to.connection, one.digest, due))

    async def _taken(self, one: deferred.DueMessage) -> None:
        """Take in a deferred message."""
        source = self._database.read(partial(peers.find, agent_id=one.source))
        if source is None:
            raise NoPeer("it is no peer any more")
        await self._fetch_project(source, orjson.loads(one.params).get("projectId"))
        message = {"method": one.method, "params": one.params}
        await self._incoming.take(source, message)

    async def _fetch_project(self, source: Peer, project_id: str | None) -> None:
        """Have the project that a message is for, before it is applied (design §7)."""
        if project_id is None:
            return
        if self._database.read(partial(projects.header, project_id=project_id)) is not None:
            return
        if source.agent_id in self._silent:
            raise self._silent[source.agent_id]
        try:
            theirs = await self._client.call(
                source.endpoint,
                "cacp/project/get",
                {"projectId": project_id},
                key=source.secret or source.api_key,
                agent_id=self._node.agent_id,
            )
        except Unreachable as error:
            self._silent[source.agent_id] = error
            raise
        params = {"project": theirs, "source_agent": source.agent_id}
        await self._incoming.take(source, {"method": "cacp/project/sync", "params": params})


def may_pass(error: Exception) -> bool:
    """Whether what a refusal is for may be over later."""
    if isinstance(error, Refused):
        return not lacks_it(error)
    return isinstance(error, CallError | RateLimited)
