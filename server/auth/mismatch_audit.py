"""Audits callers that authenticate as one agent and name another (acp-canonical §12.1, §12.8)."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog

from schemas.base import iso
from server.domain.acp.message_rate import Limit, allow
from server.domain.errors import Refusal
from server.store import sender_limits
from server.store.database import Database
from server.store.group_commit import Transaction

log = structlog.get_logger()

MOST = Limit(10, 3_600 * 1_000_000)
"""Events of one caller per hour. Further ones are counted in the next event, to spare the disk."""
CALLERS_MAX = 1_000
"""Callers that are remembered."""


class MismatchAudit:
    """Writes in the background: the calls are refused at once. `now` returns monotonic seconds."""

    def __init__(self, database: Database, now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._now = now
        self._noted: dict[str, list[int]] = {}
        self._left_out: dict[str, int] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, caller: str, claimed: str | None, address: str | None, problem: str) -> None:
        """Audit that an authenticated caller named another agent.

        Beyond `CALLERS_MAX` the caller that was quiet longest is dropped.
        """
        self._noted[caller], wait = allow(
            self._noted.pop(caller, []), int(self._now() * 1_000_000), MOST
        )
        if len(self._noted) > CALLERS_MAX:
            quiet = next(iter(self._noted))
            del self._noted[quiet]
            self._left_out.pop(quiet, None)
        if wait is not None:
            self._left_out[caller] = self._left_out.get(caller, 0) + 1
            return
        detail: dict[str, Any] = {
            "reason": "agent_mismatch",
            "claimed": claimed,
            "address": address,
            "message": problem,
        }
        if left_out := self._left_out.pop(caller, 0):
            detail["leftOut"] = left_out
        log.warning("agent_mismatch", caller=caller, claimed=claimed, address=address)
        task = asyncio.create_task(self._write(caller, detail))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def stop(self) -> None:
        """Return once all noted events are on disk, or failed to be written."""
        await asyncio.gather(*self._writing)

    async def _write(self, caller: str, detail: dict[str, Any]) -> None:
        def append(to: Transaction) -> None:
            sender_limits.audit(
                to.connection,
                at=iso(to.stamp),
                actor=caller,
                action="identify",
                outcome="refused",
                detail=detail,
            )

        try:
            await self._database.write(append)
        except Refusal as refusal:
            self._left_out[caller] = self._left_out.get(caller, 0) + 1
            log.warning("mismatch_not_audited", caller=caller, reason=refusal.data["reason"])
        except Exception as error:
            # A bug of our own must fail neither `stop` nor the event of another caller.
            self._left_out[caller] = self._left_out.get(caller, 0) + 1
            log.error("mismatch_not_audited", caller=caller, exc_info=error)
