"""What is kept for a while and found by all replicas: in memory where a process has its database
alone, else in a table that the database server does not log."""

import time
from collections.abc import Callable
from functools import partial

from server.store.connection import Connection
from server.store.database import Database
from server.store.postgresql import shared_values as table
from server.store.storage import Shared

KEPT_MAX = 10_000
"""Values of one kind that are kept in memory; beyond, the oldest is dropped."""


class SharedValues:
    """Values of one kind, by name. `now` returns seconds, monotonic."""

    def __init__(
        self, database: Database, kind: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._shared: Shared | None = database.storage.shared
        self._kind = kind
        self._now = now
        self._kept: dict[str, tuple[str, float]] = {}

    async def put(self, name: str, value: str, seconds: float) -> None:
        """Keep a value for so long."""
        if self._shared is not None:
            full = self._full(name)
            await self._shared.aside(partial(table.put, name=full, value=value, seconds=seconds))
            return
        self._kept.pop(name, None)
        self._kept[name] = value, self._now() + seconds
        if len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]

    async def put_new(self, name: str, value: str, seconds: float) -> tuple[str, float] | None:
        """Keep a value unless there is one. Returns the one that there is, with the seconds that it
        is kept for still; None when this one was put."""
        if self._shared is not None:
            full = self._full(name)
            return await self._shared.aside(
                partial(table.put_new, name=full, value=value, seconds=seconds)
            )
        before = self._live(name)
        if before is None:
            await self.put(name, value, seconds)
            return None
        return before[0], before[1] - self._now()

    async def find(self, name: str) -> str | None:
        if self._shared is not None:
            return await self._shared.aside(partial(table.find, name=self._full(name)))
        live = self._live(name)
        return None if live is None else live[0]

    def find_in(self, db: Connection, name: str) -> str | None:
        """The same for a read that runs on `db`."""
        if self._shared is not None:
            return table.find(db, self._full(name))
        live = self._live(name)
        return None if live is None else live[0]

    async def take(self, name: str) -> str | None:
        """Remove a value, and return it; only one of several callers gets it."""
        if self._shared is not None:
            return await self._shared.aside(partial(table.take, name=self._full(name)))
        live = self._live(name)
        self._kept.pop(name, None)
        return None if live is None else live[0]

    async def count(self) -> int:
        """How many are kept now."""
        if self._shared is not None:
            return await self._shared.aside(partial(table.count, prefix=self._full("")))
        for name in list(self._kept):
            self._live(name)
        return len(self._kept)

    def _full(self, name: str) -> str:
        return f"{self._kind}:{name}"

    def _live(self, name: str) -> tuple[str, float] | None:
        kept = self._kept.get(name)
        if kept is not None and kept[1] <= self._now():
            del self._kept[name]
            return None
        return kept
