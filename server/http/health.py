"""The node's health, found by reading from and writing to its database (design §6)."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from server.cluster.trouble import ReplicaTrouble
from server.domain.errors import Refusal, Unavailable
from server.store import alarms, changes, deferred, undelivered
from server.store.connection import Connection, ReadFunction
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Loops

LARGE_PROBE = "-" * 64 * 1024
"""Larger than most calls: a full disk may still have room for a few bytes."""
PROBE_SECONDS = 5.0
"""A write this recent makes a probe unnecessary."""
PROBE_PATIENCE = 2.0
"""How long a health check waits for its probe; a locked database delays writes for longer."""

READ_PATIENCE = 5.0
"""How long it waits for a read, which a database server may leave without an answer."""

T = TypeVar("T")
Level = Literal["healthy", "degraded", "unhealthy"]


class Health(NamedTuple):
    """`reason` is None when healthy. Unhealthy means that reads or writes fail. `detail` explains
    the reason and what to do."""

    status: Level
    reason: str | None = None
    detail: str | None = None


WELL = Health("healthy")


def undelivered_detail(stuck: undelivered.Stuck) -> str:
    """What peers have not accepted, and what to do. Peers are not named: `/health` is public."""
    what = "1 entity was" if stuck.entities == 1 else f"{stuck.entities} entities were"
    by = "1 peer" if stuck.peers == 1 else f"{stuck.peers} peers"
    return (
        f"{what} refused by {by}, or can't be sent; the others are sent. `cacp peers` shows which "
        "and why, `cacp peers retry` retries now, `cacp peers drop` gives up"
    )


class HealthCheck:
    """Probes the database, at most once in a few seconds."""

    def __init__(
        self,
        database: Database,
        loops: Loops | None = None,
        trouble: Callable[[], ReplicaTrouble | None] = lambda: None,
    ) -> None:
        """`trouble` returns what is wrong with this replica among others."""
        self._database = database
        self._trouble = trouble
        self._loops = loops or Loops()
        self._probed = -PROBE_SECONDS
        self._writes_seen = 0
        self._lock = asyncio.Lock()

    @property
    def loops(self) -> Loops:
        return self._loops

    async def examine(self) -> Health:
        """The node's health now."""
        broken = self._broken()
        if broken is not None:
            return broken
        try:
            await self._read(changes.can_read)
            failure = await self._probe()
            return await self._read(self._standing) if failure is None else _unhealthy(failure)
        except Refusal as refusal:
            return _unhealthy(str(refusal.data["reason"]))

    async def _read(self, function: ReadFunction[T]) -> T:
        """Raises Refusal, when the database is silent for long as well."""
        try:
            async with asyncio.timeout(READ_PATIENCE):
                return await self._database.read(function)
        except TimeoutError:
            raise Unavailable("The database does not answer", reason="storage_slow") from None

    def seen(self, db: Connection) -> Health:
        """The node's health as a read shows it, without a probe: of writes, it knows the last."""
        broken = self._broken()
        if broken is None and self._database.trouble is not None:
            broken = Health("unhealthy", self._database.trouble)
        return broken or self._standing(db)

    def _broken(self) -> Health | None:
        if self._database.corrupt:
            return Health("unhealthy", "storage_corrupt")
        if self._database.files_are_lost():
            return Health("unhealthy", "storage_missing")
        return None

    def _standing(self, db: Connection) -> Health:
        """The health of a node that reads and writes."""
        database = self._database
        if (why := database.storage.broken()) is not None:
            return Health("unhealthy", why)
        if database.storage.is_short():
            return Health("degraded", "disk_low")
        alarmed = alarms.every(db)
        for alarm in alarmed:
            if alarm.reason == "content_corrupt":
                return Health("degraded", alarm.reason, alarm.detail)
        if failing := self._loops.failing:
            return Health("degraded", "loop_failing", _failing_detail(failing))
        if (among_others := self._trouble()) is not None:
            return Health("degraded", *among_others)
        now = database.now()
        trouble = database.stamps.trouble(deferred.ahead(db, now))
        if trouble is not None:
            return Health("degraded", *trouble)
        waiting = deferred.waiting(db, now)
        if waiting:
            return Health("degraded", "deferred", _deferred_detail(waiting))
        stuck = undelivered.stuck(db)
        if stuck.entities:
            return Health("degraded", "undelivered", undelivered_detail(stuck))
        # Last, because these alarms are about other nodes and must not hide problems of this one.
        for alarm in alarmed:
            return Health("degraded", alarm.reason, alarm.detail)
        return WELL

    async def _probe(self) -> str | None:
        async with self._lock:
            database = self._database
            fresh = time.monotonic() - self._probed < PROBE_SECONDS
            if database.trouble is None and (fresh or database.writes != self._writes_seen):
                self._writes_seen = database.writes
                return None
            failures = database.failures
            try:
                async with asyncio.timeout(PROBE_PATIENCE):
                    await database.write(
                        partial(_write_probe, LARGE_PROBE if database.trouble else "")
                    )
            except TimeoutError:
                return database.trouble or "storage_slow"
            except Refusal as refusal:
                return str(refusal.data["reason"])
            if database.failures == failures:
                database.trouble = None
            self._probed = time.monotonic()
            self._writes_seen = database.writes
            return None


def _unhealthy(reason: str) -> Health:
    return Health("unhealthy", reason)


def _failing_detail(failing: list[str]) -> str:
    return (
        f"Background loops of the node fail: {', '.join(failing)}. They are retried, and the "
        "others continue; the node's log has the causes (`loop_failed`)"
    )


def _deferred_detail(waiting: Mapping[str, int]) -> str:
    messages = sum(waiting.values())
    count = "1 message of a peer waits" if messages == 1 else f"{messages} messages of peers wait"
    return (
        f"{count} for an unknown project, or for the version or round that it follows on; most are "
        f"from {next(iter(waiting))}. They are retried, and expire after 7 days; "
        "`cacp peers deferred` shows and drops them"
    )


def _write_probe(more: str, transaction: Transaction) -> None:
    # SQLite writes nothing when a value stays the same.
    changes.put_meta(transaction.connection, "probe", f"{transaction.stamp}{more}")
