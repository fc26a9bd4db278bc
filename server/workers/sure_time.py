"""Keeps the time that the node is sure of (`peers.clock.Sure`) over its restarts.

A start goes on from what stands on disk, so that a clock which is years ahead by then ends nothing.
Whoever may write the file may confirm a clock, and stamp anew what a wrong one stamped: what others
write there is gone on from.
"""

import asyncio
from contextlib import suppress

import structlog

from peers.clock import SECOND, Sure
from server.domain.errors import Unavailable
from server.store import check, stamps, untaken
from server.store.database import Database, Transaction
from server.util.loops import Loops, Turns, cancel

LOOK_SECONDS = 1.0
SAVED_EVERY = 600 * SECOND
"""What is on disk is behind by no more than this."""

log = structlog.get_logger()


class SureTime:
    """Runs from `start`, which comes before anything that ends by time, to `stop`."""

    def __init__(self, database: Database, loops: Loops) -> None:
        self._loops = loops
        self._database = database
        self._clock = database.clock
        self._saved: Sure | None = None
        self._repaired = 0
        self._doubtful = False
        self._task: asyncio.Task[None] | None = None

    async def start(self, last_stamp: int) -> None:
        """`last_stamp` is that of the last change here, 0 for none: what the node was sure of
        where an older release wrote nothing down."""
        now = self._clock.now()
        self._saved = self._database.read(stamps.kept)
        self._clock.trust(self._saved or Sure(min(last_stamp or now, now)))
        self._repaired = self._database.read(untaken.repaired)
        with suppress(Unavailable):
            # The loop tries it again, and says so.
            await self._look()
        self._task = self._loops.start("certainty", self._run)

    async def stop(self) -> None:
        await cancel([self._task])
        with suppress(Unavailable):
            await self._save(self._clock.certainty())

    async def _run(self) -> Turns:
        while True:
            await self._look()
            yield None
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        await self._look_at_time()
        repaired = self._database.read(untaken.repaired)
        if repaired != self._repaired:
            await self._database.write(self._count_anew)
            self._repaired = repaired
            log.info("restamped", by="an operator")

    def _count_anew(self, to: Transaction) -> None:
        # Where the stamps are given out: none that comes meanwhile is missed.
        self._database.stamps.newest = check.newest_stamp(to.connection)

    async def _look_at_time(self) -> None:
        found = self._database.read(stamps.kept)
        if found is not None and found != self._saved:
            log.info("clock_confirmed", by="an operator")
            self._saved = found
            self._clock.trust(found)
        sure = self._clock.certainty()
        self._clock.trust(sure)
        now = self._clock.now()
        doubtful = sure.is_doubtful(now)
        if doubtful != self._doubtful:
            self._tell(sure, now, doubtful)
        saved = self._saved
        if saved is None or doubtful != self._doubtful or abs(sure.time - saved.time) > SAVED_EVERY:
            await self._save(sure)
        self._doubtful = doubtful

    async def _save(self, sure: Sure) -> None:
        await self._database.write(lambda to: stamps.keep(to.connection, sure))
        self._saved = sure

    def _tell(self, sure: Sure, now: int, doubtful: bool) -> None:
        if doubtful:
            ahead = (now - sure.time) // SECOND
            mend = "run NTP, or `cacp clock confirm` if it is right"
            log.warning("clock_unconfirmed", seconds_ahead=ahead, mend=mend)
        else:
            log.info("clock_certain")
