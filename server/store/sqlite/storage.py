"""One SQLite file: a writer, a reader on the event loop for a few rows, and threads for wide reads
(design §3)."""

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import structlog

from server.domain.errors import Unavailable
from server.store.connection import Connection, ReadFunction
from server.store.metered import Count
from server.store.sqlite.connection import (
    Durability,
    WorkerConnection,
    checkpoint,
    connect,
    copy_to,
    roll_back,
    snapshot,
    truncate_log,
    unavailable,
)
from server.store.sqlite.memberships import Memberships
from server.store.sqlite.presence import Presence
from server.store.storage import WIDE_READERS
from server.util.loops import Loops, Turns, cancel

T = TypeVar("T")

WAL_CHECKPOINT = 8 * 1024 * 1024
"""Bytes of the write-ahead log from which on it is copied back into the database."""

LOW_DISK = 100 * 1024 * 1024

log = structlog.get_logger()


class SqliteStorage:
    """A node's SQLite file."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    shared = None

    def __init__(self, path: Path, durability: Durability = "FULL") -> None:
        self.path = path
        self.durability = durability
        self.memberships = Memberships()
        self._log = path.with_name(f"{path.name}-wal")
        self._log_is_large = asyncio.Event()
        self._said_lost = False

    def unavailable(self, error: Exception) -> Unavailable:
        return unavailable(error)

    async def open(self, loops: Loops, news: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as half_open:
            await self._connect(half_open)
            half_open.pop_all()
        self._presence = Presence(self.path)
        self._checkpointing = loops.start("checkpoint", self._checkpoint_loop)

    async def _connect(self, opened: AsyncExitStack) -> None:
        self._writer = await WorkerConnection(
            partial(connect, self.path, durability=self.durability)
        )
        opened.push_async_callback(self._writer.close)
        await self._writer.run(self.memberships.watch)
        self._wide = asyncio.Queue[WorkerConnection]()
        for _ in range(WIDE_READERS):
            reader = await WorkerConnection(partial(connect, self.path))
            opened.push_async_callback(reader.close)
            self._wide.put_nowait(reader)
        # A busy database must not block the event loop: point reads wait at most 50 ms.
        self._point = opened.enter_context(closing(connect(self.path, busy_ms=50)))
        # The first read creates the log.
        self._point.execute("SELECT 1 FROM sqlite_master").fetchone()

    async def close(self) -> None:
        """Fold the log into the database, and close all connections."""
        await cancel([self._checkpointing])
        for _ in range(WIDE_READERS):
            await (await self._wide.get()).close()
        self._point.close()
        if (lost := self._presence.lost()) is not None:
            await self._rescue(lost.what)
        with suppress(sqlite3.Error):
            await self._writer.run(truncate_log)
        await self._writer.close()

    async def _rescue(self, what: str) -> None:
        """Save acknowledged writes to a copy: no later start would find the moved or deleted
        files."""
        target = self.path.with_name(f"{self.path.name}.rescued-{time.time_ns() // 1_000_000_000}")
        try:
            await self._writer.run(partial(copy_to, target))
            log.warning("rescued", lost=what, file=target.name)
        except (sqlite3.Error, OSError) as error:
            log.error("not_rescued", lost=what, error=str(error))

    # --- reading and writing ------------------------------------------------------------------

    async def read(self, function: ReadFunction[T]) -> T:
        """Run it on this thread: switching threads would cost ten times more."""
        return function(self._point)

    async def read_wide(self, function: ReadFunction[T], count: Count | None) -> T:
        return await self._on_wide(partial(snapshot, function, count))

    async def _on_wide(self, function: Callable[[sqlite3.Connection], T]) -> T:
        connection = await self._wide.get()
        try:
            result: T = await connection.run(function)
            return result
        finally:
            self._wide.put_nowait(connection)

    async def on_writer(self, function: Callable[[Connection], T]) -> T:
        result: T = await self._writer.run(function)
        return result

    def begin(self, connection: Connection) -> int:
        # A transaction that an interrupted group left open would fail every later one.
        self.roll_back(connection)
        connection.execute("BEGIN IMMEDIATE")
        self.memberships.begin(connection)
        return 0

    def commit(self, connection: Connection, stamp: int) -> None:
        connection.execute("COMMIT")

    def roll_back(self, connection: Connection) -> None:
        roll_back(cast(sqlite3.Connection, connection))

    def is_cut(self, connection: Connection) -> bool:
        return False

    def is_lost(self) -> bool:
        """Whether the database or its log is no longer at its path."""
        lost = self._presence.lost()
        if lost is not None and not self._said_lost:
            mend = "put it back, or stop the node, which then saves a copy beside the database"
            log.error("storage_missing", lost=lost.what, mend=mend)
            # While a connection has the unlinked log open, it can still be copied back.
            self._loop.call_soon_threadsafe(self._log_is_large.set)
        self._said_lost = lost is not None
        return self._said_lost

    def broken(self) -> str | None:
        return None if self._free() is not None else "storage_missing"

    def is_short(self) -> bool:
        free = self._free()
        return free is not None and free < LOW_DISK

    def _free(self) -> int | None:
        return _or_none(lambda: shutil.disk_usage(self.path.parent).free)

    def wrote(self) -> None:
        if self.log_bytes > WAL_CHECKPOINT:
            self._log_is_large.set()

    # --- the file and its log -----------------------------------------------------------------

    @property
    def log_bytes(self) -> int:
        """Size of the write-ahead log, in bytes."""
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    def facts(self) -> dict[str, Any]:
        return {
            "kind": "sqlite",
            "bytes": _or_none(lambda: self.path.stat().st_size),
            "freeBytes": self._free(),
            "logBytes": self.log_bytes,
            "durability": self.durability,
        }

    async def _checkpoint_loop(self) -> Turns:
        """Keep the log small: copy most of it back concurrently with the writer, the rest between
        groups.

        SQLite restarts the log only when the writer itself copies the last pages.
        """
        while True:
            await self._log_is_large.wait()
            self._log_is_large.clear()
            try:
                await self._on_wide(checkpoint)
                await self._writer.run(checkpoint)
            except sqlite3.Error as error:
                # The checkpoint is still due.
                self._log_is_large.set()
                raise unavailable(error) from error
            yield None


def _or_none(read: Callable[[], int]) -> int | None:
    try:
        return read()
    except OSError:
        return None
