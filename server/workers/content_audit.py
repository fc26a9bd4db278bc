"""Looks through all that is stored, slowly and for ever: is it still what was written?

As a disk that lies is found by who reads it, not by who waits for an error. What is found is an
alarm (`server.store.alarms`) until it is right again.
"""

import asyncio
from functools import partial

import structlog

from peers.digest import Name
from server.store import alarms, digests, files, recheck
from server.store.alarms import Alarm
from server.store.database import Database, Transaction
from server.store.recheck import FIRST, Wrong
from server.util.loops import Loops, Turns, cancel

log = structlog.get_logger()

PAUSE_SECONDS = 1.0
"""Between two steps."""
PAGE = 50
"""Entities of one step: some milliseconds in a thread, beside the callers."""
SUMS = "the sums of the digests"


class ContentAudit:
    """Runs from `start` to `stop`. `rounds` is how often it has seen everything."""

    def __init__(self, database: Database, loops: Loops) -> None:
        self._database = database
        self._loops = loops
        self._after = FIRST
        self._content = 0
        self._task: asyncio.Task[None] | None = None
        self.rounds = 0

    def start(self) -> None:
        self._task = self._loops.start("audit", self._run)

    async def stop(self) -> None:
        await cancel([self._task])

    async def _run(self) -> Turns:
        while True:
            await self.step()
            yield None
            await asyncio.sleep(PAUSE_SECONDS)

    async def step(self) -> None:
        """Look at the next entities and at the next content of a file."""
        await self._next_entities()
        await self._next_content()

    async def _next_entities(self) -> None:
        look = partial(recheck.entities, after=self._after, limit=PAGE)
        found = await self._database.read_wide(look)
        if found is None:
            await self._database.write(lambda to: digests.catch_up(to.connection))
            return
        seen, wrong = found
        await self._judge(seen, wrong)
        self._after = seen[-1] if len(seen) == PAGE else FIRST
        if self._after == FIRST:
            await self._check_sums()
            self.rounds += 1

    async def _judge(self, seen: list[Name], wrong: list[Wrong]) -> None:
        known = self._database.read(alarms.counts)
        if not wrong and not known.get("content_corrupt"):
            return
        bad = {one.name: one for one in wrong}
        for name in seen:
            if name not in bad:
                await self._end_of(name)
                continue
            # A write may have come between; none does in a transaction.
            one = await self._database.write(partial(_wrong_still, name))
            if one is not None:
                what = f"The {name.entity} {name.entity_id} in project {name.project_id} is damaged"
                await self._alarm(one.about, f"{what}: {one.how}", one.sound, one.damaged)

    async def _end_of(self, name: Name) -> None:
        """End the alarm of an entity if it is mended: that its digest is that of what is stored
        says little, for a write counts the damage too."""
        about = recheck.about(name)

        def end(to: Transaction) -> bool:
            alarm = alarms.find(to.connection, "content_corrupt", about)
            if alarm is None or not recheck.is_mended(to.connection, name, alarm):
                return False
            return alarms.end(to.connection, "content_corrupt", about)

        if await self._database.write(end):
            log.warning("content_mended", about=about)

    async def _check_sums(self) -> None:
        if await self._database.read_wide(recheck.sums_are_right) or await self._database.write(
            lambda to: recheck.sums_are_right(to.connection)
        ):
            if self._database.read(alarms.counts).get("content_corrupt"):
                await self._end(SUMS)
            return
        await self._alarm(SUMS, "The digests that nodes compare are not those of what is stored")

    async def _next_content(self) -> None:
        look = partial(recheck.next_content, after=self._content)
        found = await self._database.read_wide(look)
        if found is None:
            self._content = 0
            return
        kept, is_right = found
        self._content = kept.place
        if is_right:
            if self._database.read(alarms.counts).get("content_corrupt"):
                await self._end(files.alarm_of(kept.project_id, kept.file_id))
            return
        await self._alarm(
            files.alarm_of(kept.project_id, kept.file_id),
            f"The content of file {kept.file_id} in project {kept.project_id} is not what its "
            "SHA-256 says, and given to nobody",
        )

    async def _alarm(self, about: str, what: str, sound: str = "", damaged: str = "") -> None:
        detail = (
            f"{what}. The disk or the database file was damaged, or changed by hand: see that the "
            "disk is sound, and restore a backup"
        )

        def begin(to: Transaction) -> bool:
            alarm = Alarm("content_corrupt", about, detail, to.now, sound, damaged)
            return alarms.begin(to.connection, alarm)

        if await self._database.write(begin):
            log.error("content_corrupt", about=about)

    async def _end(self, about: str) -> None:
        def end(to: Transaction) -> bool:
            return alarms.end(to.connection, "content_corrupt", about)

        if await self._database.write(end):
            log.warning("content_mended", about=about)


def _wrong_still(name: Name, to: Transaction) -> Wrong | None:
    return recheck.one_wrong(to.connection, name)
