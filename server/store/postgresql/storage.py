"""A database on a PostgreSQL server that any number of replicas share."""

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import psycopg
import structlog

from server.domain.errors import OutcomeUnknown, Unavailable
from server.store.connection import Connection, ReadFunction
from server.store.metered import Count, metered
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.errors import NotReplicated, ServerSilent, unavailable
from server.store.postgresql.news import NewsFeed
from server.store.postgresql.shared import PgShared
from server.util.loops import Loops, cancel

T = TypeVar("T")

READERS = 4
ASIDE_SECONDS = 3.0
"""How long the server may be silent where a lease depends on its answer."""
SILENT_SECONDS = 1.0
"""A read that failed after more than this had no answer."""
LOOKUP_SECONDS = 10.0
"""How long the outcome of a commit is looked up whose answer was lost."""
LOOKUP_PAUSE = 0.2

log = structlog.get_logger()


class PgStorage:
    """One writer and a few readers, each a connection that is opened anew when it was cut."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    memberships = None

    def __init__(self, url: str) -> None:
        self.url = url
        self.replica = str(uuid.uuid4())
        """This process, among the replicas."""
        self.shared = PgShared(self.replica, self._connect_aside)
        self._changes_before = 0
        self._silent = 0.0
        """When a read last failed only after a while."""
        self._number = 0
        """Of the last transaction that was to be committed."""

    def unavailable(self, error: Exception) -> Unavailable:
        return unavailable(error)

    async def open(self, loops: Loops, news: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._writing = ThreadPoolExecutor(1, "cacp-writer")
        self._reading = ThreadPoolExecutor(READERS, "cacp-reader")
        self._idle = deque[PgConnection]()
        try:
            self._writer = await self._loop.run_in_executor(self._writing, self._connect_writer)
        except psycopg.Error:
            self._writing.shutdown(wait=False)
            self._reading.shutdown(wait=False)
            raise
        self._version = self._writer.server_version
        look = partial(self.read, self.shared.look)
        feed = NewsFeed(self.url, self.replica, look, news, listens=not self._writer.pooled)
        self._feeding = [
            loops.start("database_news", feed.listen_loop),
            loops.start("database_poll", feed.poll_loop),
        ]

    def _connect_writer(self) -> PgConnection:
        """A connection to a database that has a node's tables; raises with none left open."""
        connection = self._connect()
        try:
            self.shared.look(connection)
            connection.execute(_FORGET)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def _connect(self) -> PgConnection:
        return PgConnection(self.url)

    def _connect_aside(self) -> PgConnection:
        return PgConnection(self.url, seconds=ASIDE_SECONDS)

    async def close(self) -> None:
        await cancel(self._feeding)
        await self.shared.close()
        await self._loop.run_in_executor(None, self._reading.shutdown)
        await self._loop.run_in_executor(self._writing, self._writer.close)
        self._writing.shutdown(wait=False)
        while self._idle:
            self._idle.pop().close()

    # --- reading ------------------------------------------------------------------------------

    async def read(self, function: ReadFunction[T]) -> T:
        if self._writer.pooled:
            # Limits on time hold for a transaction only.
            return await self.read_wide(function, None)
        return await self._in_reader(function)

    async def read_wide(self, function: ReadFunction[T], count: Count | None) -> T:
        return await self._in_reader(partial(_snapshot, function, count))

    async def _in_reader(self, function: ReadFunction[T]) -> T:
        asked = time.monotonic()
        return await self._loop.run_in_executor(self._reading, self._answered, function, asked)

    def _answered(self, function: ReadFunction[T], asked: float) -> T:
        """Read. What has waited while the server was silent to another one is not tried as well:
        it would keep all that come later waiting."""
        if asked < self._silent:
            raise ServerSilent("no answer to the reads before it")
        begun = time.monotonic()
        try:
            return self._on_reader(function)
        except psycopg.OperationalError:
            if time.monotonic() - begun > SILENT_SECONDS:
                self._silent = time.monotonic()
            raise

    def _on_reader(self, function: ReadFunction[T]) -> T:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            if connection.is_cut:
                connection.reopen()
            try:
                return function(connection)
            except psycopg.Error as error:
                # A connection that was idle while the server restarted; a read can be done again.
                if not connection.is_cut or isinstance(error, ServerSilent):
                    raise
                connection.reopen()
                return function(connection)
        finally:
            self._idle.append(connection)

    # --- writing ------------------------------------------------------------------------------

    async def on_writer(self, function: Callable[[Connection], T]) -> T:
        return await self._loop.run_in_executor(self._writing, function, self._writer)

    def begin(self, connection: Connection) -> int:
        pg = cast(PgConnection, connection)
        try:
            if pg.is_cut:
                pg.reopen()
            pg.roll_back()
            stamp = pg.begin_writing()
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                # Another server may take writes by now, or this one again from who connects anew.
                pg.cut()
            elif not pg.is_cut:
                pg.roll_back()
                raise
            elif isinstance(error, ServerSilent):
                raise
            # It was idle while the server restarted: nothing was begun.
            pg.reopen()
            stamp = pg.begin_writing()
        self._changes_before = pg.total_changes
        return stamp

    def commit(self, connection: Connection, stamp: int) -> None:
        pg = cast(PgConnection, connection)
        if pg.total_changes == self._changes_before:
            pg.roll_back()
            return
        self._number += 1
        pg.note(stamp, self.replica, self._number)
        try:
            pg.commit()
        except NotReplicated:
            raise _unknown() from None
        except psycopg.Error:
            if not pg.is_cut:
                raise
            outcome = self._outcome()
            log.warning("commit_unanswered", outcome=outcome)
            if outcome == "aborted":
                raise
            if outcome != "committed":
                raise _unknown() from None

    def _outcome(self) -> str:
        """Whether the last transaction was `committed` or `aborted`, else `unknown`. The server may
        be another one by now, with what was replicated to it."""
        until = time.monotonic() + LOOKUP_SECONDS
        while time.monotonic() < until:
            with suppress(psycopg.Error):
                connection = self._connect()
                try:
                    # It has the lock for as long as it may still commit.
                    connection.begin_writing()
                    row = connection.execute(_NUMBER, (self.replica,)).fetchone()
                finally:
                    connection.close()
                return "committed" if row is not None and row[0] == self._number else "aborted"
            time.sleep(LOOKUP_PAUSE)
        return "unknown"

    def roll_back(self, connection: Connection) -> None:
        cast(PgConnection, connection).roll_back()

    def is_cut(self, connection: Connection) -> bool:
        return cast(PgConnection, connection).is_cut

    def is_lost(self) -> bool:
        return False

    def broken(self) -> str | None:
        return None

    def is_short(self) -> bool:
        return False

    def wrote(self) -> None:
        pass

    def facts(self) -> dict[str, Any]:
        return {
            "kind": "postgresql",
            "server": f"{self._version // 10_000}.{self._version % 10_000}",
            "replica": self.replica,
            "pooled": self._writer.pooled,
        }


_NUMBER = "SELECT number FROM commits WHERE replica = ?"
_FORGET = "DELETE FROM commits WHERE at < now() - interval '1 day'"


def _unknown() -> OutcomeUnknown:
    return OutcomeUnknown(
        "The database server was lost while it committed: whether the call took place is not "
        "known. Read what it would have changed, or send it again with the same idempotency key"
    )


def _snapshot(function: ReadFunction[T], count: Count | None, connection: Connection) -> T:
    pg = cast(PgConnection, connection)
    pg.begin_reading()
    try:
        if count is None:
            return function(pg)
        with metered(pg, count):
            return function(pg)
    finally:
        with suppress(psycopg.Error):
            pg.roll_back()
