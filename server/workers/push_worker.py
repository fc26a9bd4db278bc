"""Makes the pushes of the channels that the node itself serves: webhooks and waking commands
(acp-canonical §10).

For each target, a channel of a recipient, one push is under way at a time: claimed on disk, made,
settled on disk. What is to be done is in the store, so that a start goes on where a kill left it.
"""

import asyncio
import random
from collections import Counter
from functools import partial
from typing import Protocol

import structlog

from schemas.base import iso
from server.domain.acp.routing import Channel
from server.methods.acp import push
from server.methods.acp.push import Parcel
from server.methods.base import Context, Session
from server.node import Node
from server.store import pushes
from server.store.database import Database
from server.store.pushes import PushTarget
from server.util.loops import Loops, Turns, cancel, together
from server.util.wait_first import first

log = structlog.get_logger()

TOGETHER = 16
"""Pushes under way at once."""
TROUBLE_SECONDS = 1.0
LOOK_SECONDS = 60.0
MARGIN = 5.0
"""Seconds that a push is leased beyond what it may take."""


class PushTransport(Protocol):
    """Makes the pushes of one channel."""

    seconds: float
    """What a push takes, at most."""

    async def push(self, parcel: Parcel) -> str | None:
        """None when it was taken; else what went wrong, in words that its sender may read."""

    async def close(self) -> None: ...


class PushWorker:
    """Runs from `start` to `stop`, in the name of the node's own agent. Without transports it does
    nothing."""

    def __init__(
        self, database: Database, node: Node, loops: Loops, transports: dict[Channel, PushTransport]
    ) -> None:
        self._loops = loops
        self._session = Session(database, node.caller, node, "acp/push", asyncio.Event())
        self._transports = transports
        self._under_way: dict[PushTarget, asyncio.Task[None]] = {}
        self._failed: dict[PushTarget, Exception] = {}
        """The targets whose last push failed by a fault of this node, until one goes well."""
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.taken: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def start(self) -> None:
        if self._transports:
            self._task = self._loops.start("push_worker", self._run)

    async def stop(self) -> None:
        """What is under way is broken off, and comes back after the next start."""
        await cancel([self._task])
        await cancel(list(self._under_way.values()))
        for transport in self._transports.values():
            await transport.close()

    async def _run(self) -> Turns:
        while True:
            next_commit = self._session.database.next_commit
            self._done.clear()
            seconds = self._begin()
            # What is not due any more has nothing left that could fail.
            self._failed = {at: one for at, one in self._failed.items() if at in self._under_way}
            yield together(self._failed.values())
            await first(next_commit, self._done, seconds=seconds)

    def _begin(self) -> float:
        """Begin what is due, as far as there is room; the seconds until more is."""
        now = self._session.database.now()
        seconds = LOOK_SECONDS
        for channel in self._transports:
            for target in self._due(channel, now):
                if target in self._under_way:
                    continue
                if len(self._under_way) >= TOGETHER:
                    return LOOK_SECONDS
                name = f"cacp-push {channel}"
                self._under_way[target] = asyncio.create_task(self._serve(target), name=name)
            due = self._session.read(partial(_next_due, channel=channel, now=now))
            if due is not None:
                seconds = min(seconds, (due - now) / 1_000_000)
        return seconds

    def _due(self, channel: Channel, now: int) -> list[PushTarget]:
        most = TOGETHER + len(self._under_way)
        return self._session.read(lambda ctx: pushes.due_targets(ctx.db, channel, iso(now), most))

    async def _serve(self, target: PushTarget) -> None:
        try:
            await self._push(target)
            self._failed.pop(target, None)
        except Exception as error:
            # It goes to the supervisor with the next turn.
            self._failed[target] = error
            await asyncio.sleep(TROUBLE_SECONDS)
        finally:
            del self._under_way[target]
            self._done.set()

    async def _push(self, target: PushTarget) -> None:
        """Push what is due to a target, one after the other."""
        transport = self._transports[target.channel]
        patience = int((transport.seconds + MARGIN) * 1_000_000)
        while True:
            parcel = await self._session.write(
                partial(push.claim, target=target, patience=patience)
            )
            if parcel is None:
                return
            error = await transport.push(parcel)
            chance = random.random()  # noqa: S311 - spreads load, guards nothing
            settled = await self._session.write(
                partial(push.settle, parcel=parcel, error=error, chance=chance)
            )
            (self.taken if error is None else self.failed)[target.channel] += 1
            if settled.opened or settled.given_up:
                log.warning(
                    "channel_degraded",
                    channel=target.channel,
                    agent=target.address,
                    error=error,
                    paused=settled.opened,
                    given_up=settled.given_up,
                )


def _next_due(ctx: Context, channel: Channel, now: int) -> int | None:
    return pushes.next_due(ctx.db, channel, iso(now))
