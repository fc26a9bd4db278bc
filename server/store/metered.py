"""Counts the bytes of a read while it runs, so that a large read can be aborted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from server.store.connection import Connection, Cursor

Count = Callable[[int], None]
"""Called with the bytes of each row. An exception that it raises aborts the read."""


@contextmanager
def metered(connection: Connection, count: Count) -> Iterator[None]:
    """Count the text and bytes of every row that is read within. Meters may be nested: each counts
    every row."""
    around = connection.row_factory

    def counted(cursor: Cursor, row: tuple[Any, ...]) -> Any:
        count(sum(map(_size, row)))
        return row if around is None else around(cursor, row)

    connection.row_factory = counted
    try:
        yield
    finally:
        connection.row_factory = around


def _size(value: Any) -> int:
    """The approximate bytes of a value in JSON, without numbers."""
    if isinstance(value, bytes) or (isinstance(value, str) and value.isascii()):
        return len(value)
    return len(value.encode()) if isinstance(value, str) else 0
