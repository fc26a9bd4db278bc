"""What replicas tell each other past the lock of those who write, and the clock that they share."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

import psycopg

from peers.clock import Reading
from peers.timekeeper import steady
from server.store.connection import Connection
from server.store.postgresql import duties
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.errors import NodeMoved, unavailable
from server.store.postgresql.migrate import migrations
from server.store.postgresql.server_clock import ServerClock
from server.util.duty import HeldDuty

T = TypeVar("T")


class PgShared:
    """A connection and a thread of its own: neither a wide read nor a long write may cost a replica
    its lease."""

    def __init__(self, replica: str, connect: Callable[[], PgConnection]) -> None:
        self.replica = replica
        self.clock = ServerClock(steady)
        self._connect = connect
        self._connection: PgConnection | None = None
        self._thread = ThreadPoolExecutor(1, "cacp-aside")

    @cached_property
    def migration(self) -> str:
        return migrations()[-1].name

    def now(self) -> int:
        return self.clock.now()

    def look(self, db: Connection) -> int:
        """The last stamp that any replica has given out. Reads the server's clock by the way."""
        sent = steady()
        row = db.execute(_LOOK).fetchone()
        if row is None:
            raise NodeMoved("there is no last stamp any more")
        stamp, now = row
        self.clock.heard(Reading(sent, now, steady()))
        return int(stamp)

    async def aside(self, function: Callable[[Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._run, function)
        except psycopg.Error as error:
            raise unavailable(error) from error

    def _run(self, function: Callable[[Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        elif connection.is_cut:
            connection.reopen()
        try:
            return function(connection)
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                # The server may take writes again by then, from who connects anew.
                connection.cut()
                raise
            # It was idle while the server restarted.
            if not connection.is_cut:
                raise
            connection.reopen()
            return function(connection)

    def verify(self, connection: Connection, duty: HeldDuty) -> None:
        duties.verify(connection, duty)

    async def close(self) -> None:
        """Close the connection; nobody uses it any more."""
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._connection is not None:
            self._connection.close()


_LOOK = "SELECT stamp, server_time() FROM cluster WHERE id = 1"
