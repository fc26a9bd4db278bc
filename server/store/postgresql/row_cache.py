"""Rows that writers ask for again and again and that seldom change, kept between transactions.

The lock of writers makes it sound: what was read under the lock is as it was if the last stamp of
all replicas is still the one that this connection left, and nothing written since may have changed
it.
"""

from collections.abc import Sequence
from typing import Any

from server.store.sql import SQL, plain

KEPT = frozenset({SQL.membership.sql, plain(SQL.breaker)})
"""The statements whose rows are kept."""
ROWS_MAX = 1_000
"""The most answers that are kept; beyond, all are forgotten."""

Key = tuple[Any, ...]


class RowCache:
    """The kept rows of one connection."""

    def __init__(self) -> None:
        self._rows: dict[Key, Sequence[Any]] = {}
        self._tables: set[str] = set()
        """The tables that they are from."""
        self._stamp = -1
        self._written: set[str] = set()
        """The tables that this transaction has written to, which it may roll back."""

    def begin(self, stamp: int) -> None:
        """A transaction has the lock; `stamp` is the last that any replica has given out."""
        self._written.clear()
        if stamp != self._stamp:
            self.forget()
            self._stamp = stamp

    def find(self, key: Key) -> Sequence[Any] | None:
        """The rows of a statement with these parameters, if they are known."""
        return self._rows.get(key)

    def keep(self, key: Key, rows: Sequence[Any], tables: frozenset[str]) -> None:
        """Note rows that were just read."""
        if not self._written.isdisjoint(tables):
            return
        if len(self._rows) >= ROWS_MAX:
            self._rows.clear()
        self._rows[key] = rows
        self._tables |= tables

    def wrote(self, tables: frozenset[str]) -> None:
        """Rows of these tables may have changed."""
        self._written |= tables
        if not self._tables.isdisjoint(tables):
            self._rows.clear()

    def committed(self, stamp: int) -> None:
        """The transaction is committed, and `stamp` the last that it has given out."""
        self._stamp = stamp

    def forget(self) -> None:
        """Keep nothing."""
        self._rows.clear()
        self._tables.clear()
        self._stamp = -1
