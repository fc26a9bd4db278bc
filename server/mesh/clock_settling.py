"""Compares clocks before a node that starts sends anything (design §7).

Nothing goes to a peer before that: what was stamped by a clock that a majority calls wrong is
stamped anew, while nobody else has it.
"""

import asyncio
from functools import partial

import structlog

from peers.clock import Reading, Shift
from server.node import Node
from server.store import check, untaken
from server.store.database import Database, Transaction
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
        """A peer has told its clock."""
        self._clock.heard(agent_id, reading)
        self.meet()

    def meet(self) -> None:
        """A peer was met: the clocks are compared from now on."""
        self._clock.begin()
        self._met.set()

    async def run(self) -> Turns:
        """Ends once the clocks have settled."""
        await self._count_stamps()
        given = await self._database.write(lambda one: untaken.begin(one.connection))
        while not self._clock.is_settled:
            # That no peer is met yet is nothing that has failed.
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
        moved = untaken.bring_back(
            transaction.connection,
            node=self._node.agent_id,
            given=given,
            now=self._database.now(),
        )
        if moved is not None:
            self._database.stamps.newest = 0
        return moved

    async def _count_stamps(self) -> None:
        self._database.stamps.stored(await self._database.read_wide(check.newest_stamp))
