"""Keeps the time that the node is sure of (`peers.clock.Sure`) across restarts.

A start continues from the time on disk, so a clock that jumped years ahead while the node was
stopped expires nothing. An operator's command may confirm a clock, or restamp what a wrong clock
stamped: both write to the file, and this service continues from what they wrote. Of several
replicas one writes down the time, and the others continue from that.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from peers.clock import SECOND, Sure
from server.domain.errors import Unavailable
from server.store import stamps, unreceived_changes
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Loops, repeat
from server.util.service import Service

LOOK_SECONDS = 1.0
SAVED_EVERY = 600 * SECOND
"""How far the time on disk may be behind."""

log = structlog.get_logger()


class SureTime(Service):
    """Must start before anything that expires. `last_stamp` is the stamp of the last change here, 0
    without one: the file of an older release has no sure time, and starts from this stamp. `saves`
    says whether it is for this process to write the time down."""

    def __init__(
        self,
        database: Database,
        loops: Loops,
        last_stamp: int,
        saves: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(loops)
        self._database = database
        self._clock = database.clock
        self._last_stamp = last_stamp
        self._saves = saves
        self._saved: Sure | None = None
        self._repaired = 0
        self._doubtful = False

    async def start(self) -> None:
        now = self._clock.now()
        self._saved = await self._database.read(stamps.kept)
        self._clock.trust(self._saved or Sure(min(self._last_stamp or now, now)))
        self._repaired = await self._database.read(unreceived_changes.last_correction)
        with suppress(Unavailable):
            # The loop tries again, and logs the failure.
            await self._look()
        self.run("certainty", partial(repeat, LOOK_SECONDS, self._look))

    async def stop(self) -> None:
        await super().stop()
        with suppress(Unavailable):
            await self._save(self._clock.certainty())

    def tell(self) -> dict[str, int]:
        """For the other replicas: the largest stamp that is stored, as far as this one knows."""
        return {"newest": self._database.stamps.newest, "repaired": self._repaired}

    def hear(self, report: Mapping[str, Any]) -> None:
        """Take what another replica tells, unless an operator has restamped since."""
        if report["repaired"] == self._repaired:
            self._database.stamps.stored(report["newest"])

    async def _look(self) -> None:
        await self._look_at_time()
        repaired = await self._database.read(unreceived_changes.last_correction)
        if repaired != self._repaired:
            await self._database.write(self._reset_newest_stamp)
            self._repaired = repaired
            log.info("restamped", by="an operator")

    def _reset_newest_stamp(self, to: Transaction) -> None:
        # On the writer's thread, which issues the stamps: none can be issued in between.
        self._database.stamps.newest = stamps.newest_stamp(to.connection)

    async def _look_at_time(self) -> None:
        kept = await self._database.read(stamps.kept)
        if kept is not None and kept != self._saved:
            if self._saves():
                log.info("clock_confirmed", by="an operator")
            self._saved = kept
            self._clock.trust(kept)
        sure = self._clock.certainty()
        self._clock.trust(sure)
        now = self._clock.now()
        doubtful = sure.is_doubtful(now)
        if doubtful != self._doubtful:
            self._log(sure, now, doubtful)
        saved = self._saved
        if saved is None or doubtful != self._doubtful or abs(sure.time - saved.time) > SAVED_EVERY:
            await self._save(sure)
        self._doubtful = doubtful

    async def _save(self, sure: Sure) -> None:
        if not self._saves():
            return
        await self._database.write(lambda to: stamps.keep(to.connection, sure))
        self._saved = sure

    def _log(self, sure: Sure, now: int, doubtful: bool) -> None:
        if doubtful:
            ahead = (now - sure.time) // SECOND
            mend = "run NTP, or `cacp clock confirm` if the clock is right"
            log.warning("clock_unconfirmed", seconds_ahead=ahead, mend=mend)
        else:
            log.info("clock_certain")
