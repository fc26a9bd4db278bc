"""How a replica learns that another one has written: a notification is a hint, the table the truth.

A notification may be lost with its connection, and none comes through a pooler that gives each
transaction another connection. So the last stamp is looked at as well: often without
notifications, seldom with them.
"""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg

from server.store.postgresql.connection import conninfo
from server.store.postgresql.errors import unavailable
from server.util.loops import Turns

POLL_SECONDS = 2.0
POLL_UNHEARD_SECONDS = 0.2
CHANNEL = "cacp"

Look = Callable[[], Awaitable[int]]
"""Returns the last stamp that any replica has given out."""


class NewsFeed:
    """Calls `news` when another replica may have written."""

    def __init__(
        self, url: str, replica: str, look: Look, news: Callable[[], None], *, listens: bool
    ) -> None:
        self._url = url
        self._replica = replica
        self._look = look
        self._news = news
        self._listens = listens
        self._hears = False

    async def listen_loop(self) -> Turns:
        """Listen for notifications of other replicas, for as long as the connection lasts."""
        if not self._listens:
            await asyncio.Event().wait()
        while True:
            async for heard in _refused(self._listened()):
                yield heard

    async def poll_loop(self) -> Turns:
        """Look at the last stamp, and tell when it has changed."""
        async for looked in _refused(self._polled()):
            yield looked

    async def _listened(self) -> Turns:
        """A turn for a connection that listens, until it is cut."""
        connection = await psycopg.AsyncConnection.connect(
            conninfo(self._url).decode(), autocommit=True
        )
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._hears = True
            # What was written before it listened.
            self._news()
            yield None
            try:
                async for notification in connection.notifies():
                    if notification.payload != self._replica:
                        self._news()
            finally:
                self._hears = False

    async def _polled(self) -> Turns:
        seen = await self._look()
        while True:
            await asyncio.sleep(POLL_SECONDS if self._hears else POLL_UNHEARD_SECONDS)
            stamp = await self._look()
            if stamp != seen:
                seen = stamp
                self._news()
            yield None


async def _refused(turns: Turns) -> Turns:
    """The turns, in which the database is away as it is for reads and writes."""
    try:
        async for turn in turns:
            yield turn
    except psycopg.Error as error:
        raise unavailable(error) from error
