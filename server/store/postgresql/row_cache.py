"""Rows that writers ask for again and again and that seldom change, kept between transactions.

The lock of writers makes it sound: what was read under the lock is as it was if the last stamp of
all replicas is still the one that this connection left, and nothing written since may have changed
it.
"""

from collections.abc import Sequence
from typing import Any

from server.store.sql import SQL, plain

KEPT = frozenset(
    {
        plain(SQL.membership),
        plain(SQL.breaker),
        plain(SQL.send_stamps),
        plain(SQL.high_water),
    }
)
"""The statements whose rows are kept."""
WRITTEN_THROUGH = {
    plain(SQL.put_send_stamps): (plain(SQL.send_stamps), (0, 1), 2),
    plain(SQL.put_high_water): (plain(SQL.high_water), (1,), 0),
}
"""Statements that replace the value of one row: the statement that reads it, and where its
parameters and the value are among those of the replacing one."""
ROWS_MAX = 1_000
"""The most answers that are kept; beyond, all are forgotten."""

Key = tuple[Any, ...]


class RowCache:
    """The kept rows of one connection."""

    def __init__(self) -> None:
        self._rows: dict[Key, Sequence[Any]] = {}
        self._keys: dict[str, set[Key]] = {}
        """What is kept, by the tables that it is from."""
        self._stamp = -1
        self._written: set[str] = set()
        """The tables that this transaction has written to, which it may roll back."""
        self._replaced: set[Key] = set()
        """Rows that this transaction has replaced, and that are kept as they are now."""

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
            self._keys.clear()
        self._rows[key] = rows
        for table in tables:
            self._keys.setdefault(table, set()).add(key)

    def wrote(self, tables: frozenset[str]) -> None:
        """Rows of these tables may have changed."""
        self._written |= tables
        for table in tables:
            for key in self._keys.pop(table, ()):
                self._rows.pop(key, None)

    def replaced(self, sql: str, values: Sequence[Any]) -> bool:
        """Note the row that a statement replaces, if it is known. Returns whether it is."""
        through = WRITTEN_THROUGH.get(sql)
        if through is None:
            return False
        reading, keys, at = through
        known = (reading, *(values[key] for key in keys))
        if not self._rows.get(known):
            # Whether there was a row to replace is not known.
            return False
        self._rows[known] = [(values[at],)]
        self._replaced.add(known)
        return True

    def committed(self, stamp: int) -> None:
        """The transaction is committed, and `stamp` the last that it has given out."""
        self._stamp = stamp
        self._replaced.clear()

    def rolled_back(self) -> None:
        """What the transaction has replaced is as it was."""
        for key in self._replaced:
            self._rows.pop(key, None)
        self._replaced.clear()

    def forget(self) -> None:
        """Keep nothing."""
        self._rows.clear()
        self._keys.clear()
        self._replaced.clear()
        self._stamp = -1
