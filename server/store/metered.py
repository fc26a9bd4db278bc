"""Counts what a read takes out of the database while it does: it can be broken off in the midst."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Count = Callable[[int], None]
"""Is told how many bytes were read. What it raises breaks the read off."""


@contextmanager
def metered(connection: sqlite3.Connection, count: Count) -> Iterator[None]:
    """Have the text and bytes of every row that is read here counted, also by who counts them
    around this."""
    around = connection.row_factory

    def counted(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Any:
        count(sum(map(_size, row)))
        return row if around is None else around(cursor, row)

    connection.row_factory = counted
    try:
        yield
    finally:
        connection.row_factory = around


def _size(value: Any) -> int:
    """The bytes of a value as JSON has them, roughly: all but those of numbers."""
    if isinstance(value, bytes) or (isinstance(value, str) and value.isascii()):
        return len(value)
    return len(value.encode()) if isinstance(value, str) else 0
