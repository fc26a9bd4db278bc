"""Makes the pushes of the channels that the node serves itself: webhooks and wake commands
(acp-canonical §10).

A target is one channel of one recipient. Each target has one push in flight: leased on disk, made,
settled on disk. After a crash the store still has what is due.
"""

import asyncio
import random
import time
from collections import Counter
from functools import partial
from typing import Protocol

import structlog

from schemas.base import iso
from server.domain.acp.routing import Channel
from server.methods.acp import push
from server.methods.acp.push import Parcel
from server.methods.base import CallSession, Context
from server.node import Node
from server.store import pushes
from server.store.database import Database
from server.store.pushes import PushTarget
from server.util.duty import check_duty
from server.util.loops import Loops, Turns, cancel, grouped
from server.util.service import Service
from server.util.wait_first import first

log = structlog.get_logger()

CONCURRENT_TARGETS = 16
"""How many targets may have a push in flight."""
TROUBLE_SECONDS = 1.0
LOOK_SECONDS = 60.0
PAUSE_SECONDS = 0.02
"""From one look for what is due to the next, at least: under load each commit would cost one."""
MARGIN = 5.0
"""Seconds that a lease lasts beyond the longest push."""


class PushTransport(Protocol):
    """Makes the pushes of one channel."""

    seconds: float
    """The longest that one push may take."""

    async def push(self, parcel: Parcel) -> str | None:
        """None when the push was accepted; else the problem, in words that its sender may read."""

    async def close(self) -> None: ...


class PushWorker(Service):
    """Acts in the name of the node's own agent. Without transports it does nothing."""

    def __init__(
        self, database: Database, node: Node, loops: Loops, transports: dict[Channel, PushTransport]
    ) -> None:
        super().__init__(loops)
        self._session = CallSession(database, node.caller, node, "acp/push", asyncio.Event())
        self._transports = transports
        self._in_flight: dict[PushTarget, asyncio.Task[None]] = {}
        self._failed: dict[PushTarget, Exception] = {}
        """Targets whose last push failed by a fault of this node, with the fault."""
        self._done = asyncio.Event()
        self.taken: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    async def start(self) -> None:
        if self._transports:
            self.run("push_worker", self._push_all)

    async def stop(self) -> None:
        """Cancels pushes in flight: they are due again after the next start."""
        await super().stop()
        await cancel(list(self._in_flight.values()))

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()

    async def _push_all(self) -> Turns:
        while True:
            next_commit = self._session.database.next_commit
            self._done.clear()
            began = time.monotonic()
            seconds = await self._begin()
            # A target that is not in flight has nothing due, so its last failure is over.
            self._failed = {
                target: error for target, error in self._failed.items() if target in self._in_flight
            }
            yield grouped(self._failed.values())
            await first(next_commit, self._done, seconds=seconds)
            await asyncio.sleep(began + PAUSE_SECONDS - time.monotonic())

    async def _begin(self) -> float:
        """Start the pushes that are due. Returns the seconds until more are due."""
        now = self._session.database.now()
        seconds = LOOK_SECONDS
        for channel in self._transports:
            for target in await self._due(channel, now):
                if target in self._in_flight:
                    continue
                if len(self._in_flight) >= CONCURRENT_TARGETS:
                    return LOOK_SECONDS
                name = f"cacp-push {channel}"
                self._in_flight[target] = asyncio.create_task(self._serve(target), name=name)
            due = await self._session.read(partial(_next_due, channel=channel, now=now))
            if due is not None:
                seconds = min(seconds, (due - now) / 1_000_000)
        return seconds

    async def _due(self, channel: Channel, now: int) -> list[PushTarget]:
        most = CONCURRENT_TARGETS + len(self._in_flight)
        return await self._session.read(
            lambda ctx: pushes.due_targets(ctx.db, channel, iso(now), most)
        )

    async def _serve(self, target: PushTarget) -> None:
        try:
            await self._push(target)
            self._failed.pop(target, None)
        except Exception as error:
            # The loop yields it with its next turn.
            self._failed[target] = error
            await asyncio.sleep(TROUBLE_SECONDS)
        finally:
            del self._in_flight[target]
            self._done.set()

    async def _push(self, target: PushTarget) -> None:
        """Push what is due to a target, one message after the other."""
        transport = self._transports[target.channel]
        patience = int((transport.seconds + MARGIN) * 1_000_000)
        while True:
            parcel = await self._session.write(
                partial(push.claim, target=target, patience=patience)
            )
            if parcel is None:
                return
            check_duty()
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
