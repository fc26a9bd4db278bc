"""Continuously re-reads all stored content and compares it with its digests.

Only reading reveals a faulty disk. Damage raises an alarm (`server.store.alarms`), which
ends once the content is right again.
"""

from functools import partial

import structlog

from peers.digest import Name
from server.store import alarms, content_integrity, digests, files
from server.store.alarms import Alarm
from server.store.content_integrity import FIRST, FIRST_CONTENT, DamagedEntity
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Loops, repeat
from server.util.service import Service

log = structlog.get_logger()

PAUSE_SECONDS = 1.0
"""Between two steps."""
PAGE = 50
"""Entities per step: some milliseconds of a reader's thread."""
SUMS = "the sums of the digests"


class ContentAudit(Service):
    """`rounds` counts how often all content was checked."""

    def __init__(self, database: Database, loops: Loops) -> None:
        super().__init__(loops)
        self._database = database
        self._after = FIRST
        self._content = FIRST_CONTENT
        self.rounds = 0

    async def start(self) -> None:
        self.run("audit", partial(repeat, PAUSE_SECONDS, self.step))

    async def step(self) -> None:
        """Check the next page of entities and the content of the next file."""
        await self._check_entities()
        await self._check_file()

    async def _check_entities(self) -> None:
        checked = await self._database.read_wide(
            partial(content_integrity.entities, after=self._after, limit=PAGE)
        )
        if checked is None:
            await self._database.write(lambda to: digests.catch_up(to.connection))
            return
        names, damaged = checked
        await self._judge(names, damaged)
        self._after = names[-1] if len(names) == PAGE else FIRST
        if self._after == FIRST:
            await self._check_sums()
            self.rounds += 1

    async def _judge(self, names: list[Name], damaged: list[DamagedEntity]) -> None:
        if not damaged and not await self._has_alarms():
            return
        suspects = {wrong.name for wrong in damaged}
        for name in names:
            if name not in suspects:
                await self._end_if_mended(name)
                continue
            # A concurrent write may explain the difference; inside a transaction there is none.
            wrong = await self._database.write(partial(_recheck, name))
            if wrong is not None:
                entity = f"{name.entity} {name.entity_id} in project {name.project_id}"
                detail = f"The {entity} is damaged: {wrong.how}"
                await self._raise(wrong.about, detail, wrong.sound, wrong.damaged)

    async def _end_if_mended(self, name: Name) -> None:
        """End the alarm of an entity that was repaired. A matching digest alone proves nothing: a
        write after the damage counts the damaged content too."""
        about = content_integrity.about(name)

        def end(to: Transaction) -> bool:
            alarm = alarms.find(to.connection, "content_corrupt", about)
            if alarm is None or not content_integrity.is_mended(to.connection, name, alarm):
                return False
            return alarms.end(to.connection, "content_corrupt", about)

        if await self._database.write(end):
            log.warning("content_mended", about=about)

    async def _check_sums(self) -> None:
        if await self._database.read_wide(
            content_integrity.sums_are_right
        ) or await self._database.write(lambda to: content_integrity.sums_are_right(to.connection)):
            if await self._has_alarms():
                await self._end(SUMS)
            return
        await self._raise(SUMS, "The digests that nodes compare differ from those of the content")

    async def _check_file(self) -> None:
        checked = await self._database.read_wide(
            partial(content_integrity.next_content, after=self._content)
        )
        if checked is None:
            self._content = FIRST_CONTENT
            return
        kept, is_right = checked
        self._content = kept
        about = files.alarm_of(kept.project_id, kept.file_id)
        if not is_right:
            await self._raise(
                about,
                f"The content of file {kept.file_id} in project {kept.project_id} does not match "
                "its SHA-256, and is not served",
            )
        elif await self._has_alarms():
            await self._end(about)

    async def _has_alarms(self) -> bool:
        return "content_corrupt" in await self._database.read(alarms.counts)

    async def _raise(self, about: str, detail: str, sound: str = "", damaged: str = "") -> None:
        advice = (
            "The disk or the database file was damaged, or the file was edited by hand: check the "
            "disk, and restore a backup"
        )

        def begin(to: Transaction) -> bool:
            alarm = Alarm("content_corrupt", about, f"{detail}. {advice}", to.now, sound, damaged)
            return alarms.begin(to.connection, alarm)

        if await self._database.write(begin):
            log.error("content_corrupt", about=about)

    async def _end(self, about: str) -> None:
        def end(to: Transaction) -> bool:
            return alarms.end(to.connection, "content_corrupt", about)

        if await self._database.write(end):
            log.warning("content_mended", about=about)


def _recheck(name: Name, to: Transaction) -> DamagedEntity | None:
    return content_integrity.damage_of(to.connection, name)
