"""Compares clocks at a node's start, before it sends anything (design §7).

Entities stamped by a clock that a majority finds wrong are restamped while no other node has them.
"""

import asyncio
from functools import partial

import structlog

from peers.clock import Reading, Shift
from server.node import Node
from server.store import stamps, unreceived_changes
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Turns

log = structlog.get_logger()

SETTLE_SECONDS = 0.1


class ClockSettling:
    """`settled` is set once the node may send what it has stamped."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node
        self._clock = database.clock
        self._met = asyncio.Event()
        self.settled = asyncio.Event()

    def heard_time(self, agent_id: str, reading: Reading) -> None:
        """Take a reading of a peer's clock."""
        self._clock.heard(agent_id, reading)
        self.meet()

    def meet(self) -> None:
        """Begin to compare clocks: there is a peer."""
        self._clock.begin()
        self._met.set()

    async def run(self) -> Turns:
        """Ends once the clocks have settled."""
        await self._count_stamps()
        given = await self._database.write(
            lambda transaction: unreceived_changes.last_received(transaction.connection)
        )
        while not self._clock.is_settled:
            # Having no peer yet is not a failure.
            yield None
            await self._met.wait()
            await asyncio.sleep(SETTLE_SECONDS)
        moved = await self._database.write(partial(self._bring_back, given))
        if moved is not None:
            log.warning("restamped", by_seconds=-moved.by / 1e6)
            await self._count_stamps()
        self._clock.sends = True
        self.settled.set()
        yield None

    def _bring_back(self, given: int, transaction: Transaction) -> Shift | None:
        moved = unreceived_changes.correct_at_start(
            transaction.connection,
            node=self._node.agent_id,
            given=given,
            now=self._database.now(),
        )
        if moved is not None:
            self._database.stamps.newest = 0
        return moved

    async def _count_stamps(self) -> None:
        self._database.stamps.stored(await self._database.read_wide(stamps.newest_stamp))
