"""What of a node's database is carried into another one, and how both are compared."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

from server.store.connection import Connection
from server.store.sqlite import schema

Row = tuple[Any, ...]

DERIVED = frozenset({"search_docs", "search_queue"})
"""Tables that a node makes anew from the others."""
SIGNED_IN = frozenset({"page_sessions", "page_links"})
"""Tables that a copy does without: nobody whose session has ended since is signed in again."""

MOVED, MOVING = "moved", "moving"
"""Names in `meta`: where a database was moved to, and of what one is an unfinished copy."""
OWN = frozenset({MOVED, MOVING, "copied", "database", "schema_version", "search_rules"})
"""Names in `meta` of what is true of one database only."""
EPOCH = "epoch"


class MoveSource(Protocol):
    """An open database that is read while nobody may write to it."""

    def count(self, table: str) -> int: ...

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        """The rows in the order in which they were written, where that is known."""

    def counters(self) -> dict[str, int]:
        """The last number that each table gave to a row, for those that count."""

    def last_stamp(self) -> int:
        """The last stamp that was given out."""

    def moved_to(self) -> str | None:
        """Where the database was moved to before."""

    def mark_moved(self, place: str) -> None:
        """Make the database refuse to be used, and end the transaction."""


class MoveTarget(Protocol):
    """A database that is being filled, which refuses to be used until it is whole."""

    def order(self, tables: Iterable[str]) -> list[str]:
        """The tables in an order in which they can be filled."""

    def fill(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        """Write the rows of a table."""

    def filled(self, counters: dict[str, int], last_stamp: int) -> None:
        """Note that all tables are filled."""

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        """The rows that were written, read back from the database."""

    def damage(self) -> str | None:
        """What is wrong with the content by its own digests; None when nothing is."""

    def finish(self) -> None:
        """Make the database one that can be used."""


OpenSource = AbstractContextManager[MoveSource]
OpenTarget = AbstractContextManager[MoveTarget]


@cache
def tables() -> dict[str, tuple[str, ...]]:
    """The columns of each table that is carried over."""
    elements = schema.made(tuple(schema.migrations())).elements
    columns: dict[str, list[str]] = {}
    for element in sorted(elements):
        kind, _, name = element.partition(" ")
        if kind == "column":
            table, _, column = name.partition(".")
            columns.setdefault(table, []).append(column)
    return {table: tuple(names) for table, names in columns.items() if table not in DERIVED}


def carried(rows: Iterable[Row], columns: tuple[str, ...], *, keep_epoch: bool) -> Iterator[Row]:
    """The rows of `meta` without those of one database only."""
    place = columns.index("name")
    for row in rows:
        if row[place] not in OWN and (keep_epoch or row[place] != EPOCH):
            yield row


class TableSum:
    """A number of rows, and a checksum of them that their order does not matter to."""

    def __init__(self) -> None:
        self.rows = 0
        self._total = 0

    def add(self, row: Row) -> None:
        text = repr(row).encode("utf-8", "surrogatepass")
        # Two equal rows do not cancel out, as they would in an exclusive or.
        self._total += int.from_bytes(hashlib.blake2b(text, digest_size=32).digest(), "big")
        self._total %= 1 << 256
        self.rows += 1

    @property
    def digest(self) -> str:
        """The checksum, in hex."""
        return f"{self._total:064x}"

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, which are added as they are taken."""
        for row in rows:
            self.add(row)
            yield row


def check_here(db: Connection) -> None:
    """Raises DatabaseRefused for a database that was moved, or is an unfinished copy."""
    check_usable(dict(db.execute("SELECT name, value FROM meta").fetchall()))


class DatabaseRefused(ValueError):
    """A node's database that a node may not use."""


def check_usable(meta: dict[str, str]) -> None:
    """Raises DatabaseRefused for a database that was moved, or is an unfinished copy. `meta` has
    what the database says of itself, by name."""
    if MOVED in meta:
        raise DatabaseRefused(
            f"The node was moved to {meta[MOVED]}: start it there. What this database holds is "
            "what it held then"
        )
    if MOVING in meta:
        raise DatabaseRefused(
            f"The database is an unfinished copy of {meta[MOVING]}: run `cacp move` again"
        )
