"""Keeps the mail in order beside the callers: expiry and retention (acp-canonical §12.7).

All it knows is in the store, so that it goes on after a restart where it was.
"""

import asyncio
import time

import structlog

from schemas.base import stamp_of
from server.methods.acp import retention
from server.methods.acp.retention import Ageing
from server.methods.base import Session
from server.node import Node
from server.store import messages
from server.store.database import Database
from server.util.loops import Loops, Turns, cancel, each, storage_is_away, together

log = structlog.get_logger()

LOOK_SECONDS = 1.0
RETAIN_SECONDS = 3_600.0
PAGE = 200
"""Messages of one transaction."""


class MailSweeper:
    """Runs from `start` to `stop`, in the name of the node's own agent."""

    def __init__(self, database: Database, node: Node, loops: Loops) -> None:
        self._loops = loops
        self._session = Session(database, node.caller, node, "acp/age", asyncio.Event())
        self._retain_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._loops.start("mail_sweeper", self._run)

    async def stop(self) -> None:
        await cancel([self._task])

    async def _run(self) -> Turns:
        while True:
            yield await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> Exception | None:
        """What failed for some messages; the others have been seen to."""
        failed: list[Exception | None] = []
        next_expiry = self._session.read(lambda ctx: messages.next_expiry(ctx.db))
        if next_expiry is not None and stamp_of(next_expiry) <= self._session.database.clock.sure():
            failed.append(await self._all(retention.EXPIRE))
        if time.monotonic() >= self._retain_at:
            retained = [await self._all(retention.LAPSE), await self._all(retention.RETAIN)]
            await self._session.write(retention.forget)
            if not any(retained):
                self._retain_at = time.monotonic() + RETAIN_SECONDS
            failed += retained
        return together(filter(None, failed))

    async def _all(self, kind: Ageing) -> Exception | None:
        """Page by page, so that no caller waits long for the writer, up to one of which some
        fail."""
        total = dead = 0
        before: list[str] = []
        failed: Exception | None = None
        while failed is None and (page := self._session.read(lambda ctx: kind.find(ctx, PAGE))):
            if page == before:
                failed = RuntimeError(f"{len(page)} messages are not {kind.name} by what does that")
                break
            ended, failed = await self._end(kind, page)
            total, dead, before = total + len(ended), dead + sum(ended), page
        if total:
            log.info("mail", what=kind.name, messages=total, dead_letters=dead)
        return failed

    async def _end(self, kind: Ageing, page: list[str]) -> tuple[list[int], Exception | None]:
        """The dead letters that each message has left, and what failed for some: one that can't be
        ended holds up no other."""
        try:
            ended = await self._session.write(lambda ctx: [kind.end(ctx, one) for one in page])
        except Exception as error:
            if storage_is_away(error):
                raise
        else:
            return ended, None
        alone: list[int] = []

        async def end(message_id: str) -> None:
            alone.append(await self._session.write(lambda ctx: kind.end(ctx, message_id)))

        return alone, await each(page, end)
