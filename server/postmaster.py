"""Keeps the mail in order beside the callers: expiry and retention (acp-canonical §12.7).

All it knows is in the store, so that it goes on after a restart where it was.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from schemas.base import stamp_of
from server.domain.errors import Refusal
from server.identity import Caller
from server.methods.acp import age
from server.methods.acp.age import Aged
from server.methods.base import Context, Node, Session
from server.store import messages
from server.store.database import Database

log = structlog.get_logger()

LOOK_SECONDS = 1.0
RETAIN_SECONDS = 3_600.0
PAGE = 200
"""Messages of one transaction."""


class Postmaster:
    """Runs from `start` to `stop`, in the name of the node's own agent."""

    def __init__(self, database: Database, node: Node) -> None:
        caller = Caller(node.agent_id, node.repo, "verified", "local")
        self._session = Session(database, caller, node, "acp/age", asyncio.Event())
        self._retain_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="cacp-postmaster")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except Refusal as refusal:
                log.warning("mail_not_aged", reason=refusal.data["reason"])
            except Exception:
                log.exception("mail_not_aged")
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        next_expiry = self._session.read(lambda ctx: messages.next_expiry(ctx.db))
        if next_expiry is not None and stamp_of(next_expiry) <= self._session.database.now():
            await self._all("expired", age.expire)
        if time.monotonic() >= self._retain_at:
            await self._all("lapsed", age.lapse)
            await self._all("archived", age.retain)
            self._retain_at = time.monotonic() + RETAIN_SECONDS

    async def _all(self, what: str, step: Callable[[Context, int], Aged]) -> None:
        """Page by page, so that no caller waits long for the writer."""
        total = dead = 0
        aged = Aged(PAGE, 0)
        while aged.messages == PAGE:
            aged = await self._session.write(lambda ctx: step(ctx, PAGE))
            total, dead = total + aged.messages, dead + aged.dead
        if total:
            log.info("mail", what=what, messages=total, dead_letters=dead)
