"""Is the node well? Asked of the database itself, by reading and by writing (design §7)."""

import asyncio
import shutil
import time
from functools import partial
from typing import Literal, NamedTuple

from server.domain.errors import Refusal
from server.store import changes
from server.store.database import Database, Transaction

LARGE_PROBE = "-" * 64 * 1024
"""Larger than most calls: after trouble a full disk may have room for a few bytes still."""
PROBE_SECONDS = 5.0
"""A write this recent stands for a probe."""
PROBE_PATIENCE = 2.0
"""Who asks about health waits no longer; a locked database keeps a write waiting for more."""
LOW_DISK = 100 * 1024 * 1024

Level = Literal["healthy", "degraded", "unhealthy"]


class Health(NamedTuple):
    """`reason` is None when healthy; unhealthy means that writes or reads fail. `detail` says more,
    and what to do."""

    status: Level
    reason: str | None = None
    detail: str | None = None


class Checkup:
    """Probes the database, at most once in a few seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._probed = -PROBE_SECONDS
        self._writes_seen = 0
        self._lock = asyncio.Lock()

    async def examine(self) -> Health:
        """The node's health now."""
        if self._database.corrupt:
            return Health("unhealthy", "storage_corrupt")
        if self._database.files_are_lost():
            return Health("unhealthy", "storage_missing")
        try:
            self._database.read(changes.can_read)
        except Refusal as refusal:
            return Health("unhealthy", str(refusal.data["reason"]))
        failure = await self._probe()
        if failure is not None:
            return Health("unhealthy", failure)
        try:
            free = shutil.disk_usage(self._database.path.parent).free
        except OSError:
            return Health("unhealthy", "storage_missing")
        if free < LOW_DISK:
            return Health("degraded", "disk_low")
        trouble = self._database.time_trouble()
        return Health("healthy") if trouble is None else Health("degraded", *trouble)

    async def _probe(self) -> str | None:
        async with self._lock:
            database = self._database
            fresh = time.monotonic() - self._probed < PROBE_SECONDS
            if database.trouble is None and (fresh or database.writes != self._writes_seen):
                self._writes_seen = database.writes
                return None
            try:
                async with asyncio.timeout(PROBE_PATIENCE):
                    await database.write(
                        partial(_write_probe, LARGE_PROBE if database.trouble else "")
                    )
            except TimeoutError:
                return database.trouble or "storage_slow"
            except Refusal as refusal:
                return str(refusal.data["reason"])
            self._probed = time.monotonic()
            self._writes_seen = database.writes
            return None


def _write_probe(more: str, transaction: Transaction) -> None:
    # SQLite writes nothing when a value stays the same.
    changes.put_meta(transaction.connection, "probe", f"{transaction.stamp}{more}")
