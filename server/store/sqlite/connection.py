"""Connections to a node's SQLite file: their settings, their errors as refusals, and copies."""

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Literal, TypeVar

import aiosqlite

from server.domain.errors import Unavailable
from server.store.connection import ReadFunction
from server.store.metered import Count, metered

T = TypeVar("T")
Durability = Literal["FULL", "NORMAL"]

WAL_TARGET = 4 * 1024 * 1024
"""Bytes to which SQLite truncates the write-ahead log when it starts the log anew."""
BUSY_MS = 5_000


def connect(
    path: Path, *, durability: Durability = "FULL", busy_ms: int = BUSY_MS
) -> sqlite3.Connection:
    """A connection in autocommit mode, with the pragmas of design §3."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    with ExitStack() as half_open:
        half_open.enter_context(closing(connection))
        connection.execute(f"PRAGMA busy_timeout={busy_ms:d}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={durability}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA cache_size=-16000")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute(f"PRAGMA journal_size_limit={WAL_TARGET:d}")
        half_open.pop_all()
    return connection


class WorkerConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs whole functions on its thread: many statements cost one
    switch between threads."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)

    def __await__(self) -> Any:
        self._thread.daemon = True
        return super().__await__()

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        result: T = await self._execute(function, self._conn)  # type: ignore[no-untyped-call]
        return result


def unavailable(error: Exception) -> Unavailable:
    """The refusal for a driver's error, with a reason for programs."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for prefix, reason in _REASONS.items():
        if name.startswith(prefix):
            return Unavailable(_WORDS[reason], reason=reason)
    return Unavailable(_WORDS["storage_failed"], reason="storage_failed")


_REASONS = {
    "SQLITE_FULL": "storage_full",
    "SQLITE_READONLY": "storage_read_only",
    "SQLITE_BUSY": "storage_locked",
    "SQLITE_LOCKED": "storage_locked",
    "SQLITE_CORRUPT": "storage_corrupt",
    "SQLITE_NOTADB": "storage_corrupt",
    "SQLITE_IOERR": "storage_failed",
    "SQLITE_CANTOPEN": "storage_failed",
}
_WORDS = {
    "storage_full": "The database cannot be written: the disk is full",
    "storage_read_only": "The database cannot be written: it is read-only",
    "storage_locked": "The database is locked by another process; retry in a few seconds",
    "storage_corrupt": "The database file is damaged; see the node's log",
    "storage_failed": "The database cannot be accessed; see the node's log",
}


def copy_to(target: Path, connection: sqlite3.Connection) -> None:
    """Copy a database consistently, and mark the copy so that it gets a new epoch (design §3)."""
    target.touch(mode=0o600)
    with closing(sqlite3.connect(target)) as made:
        connection.backup(made)
        made.execute("INSERT INTO meta (name, value) VALUES ('copied', '1') ON CONFLICT DO NOTHING")
        made.commit()
        made.execute("PRAGMA journal_mode=DELETE")


def snapshot(function: ReadFunction[T], count: Count | None, connection: sqlite3.Connection) -> T:
    connection.execute("BEGIN")
    try:
        if count is None:
            return function(connection)
        with metered(connection, count):
            return function(connection)
    finally:
        roll_back(connection)


def roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def truncate_log(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
