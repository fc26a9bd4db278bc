"""Expires and archives mail in the background (acp-canonical §12.7).

All state is in the store, so a restart continues where the last run stopped.
"""

import asyncio
import time
from functools import partial

import structlog

from schemas.base import stamp_of
from server.methods.acp import retention
from server.methods.acp.retention import Ageing
from server.methods.base import CallSession
from server.node import Node
from server.store import messages
from server.store.database import Database
from server.util.loops import Loops, grouped, repeat, run_each, storage_is_away
from server.util.service import Service

log = structlog.get_logger()

LOOK_SECONDS = 1.0
RETAIN_SECONDS = 3_600.0
PAGE = 200
"""Messages per transaction."""


class MailSweeper(Service):
    """Acts in the name of the node's own agent."""

    def __init__(self, database: Database, node: Node, loops: Loops) -> None:
        super().__init__(loops)
        self._session = CallSession(database, node.caller, node, "acp/age", asyncio.Event())
        self._retain_at = 0.0

    async def start(self) -> None:
        self.run("mail_sweeper", partial(repeat, LOOK_SECONDS, self._sweep))

    async def _sweep(self) -> Exception | None:
        """Age what is due. Returns what failed for some messages."""
        problems: list[Exception | None] = []
        next_expiry = await self._session.read(lambda ctx: messages.next_expiry(ctx.db))
        if next_expiry is not None and stamp_of(next_expiry) <= self._session.database.clock.sure():
            problems.append(await self._age_all(retention.EXPIRE))
        if time.monotonic() >= self._retain_at:
            retained = [await self._age_all(retention.LAPSE), await self._age_all(retention.RETAIN)]
            await self._session.write(retention.forget)
            if not any(retained):
                self._retain_at = time.monotonic() + RETAIN_SECONDS
            problems += retained
        return grouped(filter(None, problems))

    async def _age_all(self, kind: Ageing) -> Exception | None:
        """Age page by page, so that no caller waits long for the writer. Stops after a page of
        which some messages failed."""
        total = dead_total = 0
        before: list[str] = []
        problem: Exception | None = None
        while problem is None and (
            page := await self._session.read(lambda ctx: kind.find(ctx, PAGE))
        ):
            if page == before:
                problem = RuntimeError(f"{len(page)} messages stay due after being {kind.name}")
                break
            dead_letters, problem = await self._age(kind, page)
            total += len(dead_letters)
            dead_total += sum(dead_letters)
            before = page
        if total:
            log.info("mail", what=kind.name, messages=total, dead_letters=dead_total)
        return problem

    async def _age(self, kind: Ageing, page: list[str]) -> tuple[list[int], Exception | None]:
        """Age a page in one transaction or, if that fails, message by message.

        Returns the dead letters of each aged message, and what failed for the others.
        """
        try:
            dead_letters = await self._session.write(
                lambda ctx: [kind.end(ctx, message_id) for message_id in page]
            )
        except Exception as error:
            if storage_is_away(error):
                raise
        else:
            return dead_letters, None
        dead_letters_by_message: list[int] = []

        async def end(message_id: str) -> None:
            dead_letters_by_message.append(
                await self._session.write(lambda ctx: kind.end(ctx, message_id))
            )

        return dead_letters_by_message, await run_each(page, end)
