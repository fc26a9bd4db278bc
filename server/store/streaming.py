"""Statements with more rows than fit into memory, on either kind of database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from server.store.connection import Connection, Cursor

if TYPE_CHECKING:
    from server.store.postgresql.connection import PgConnection


class RowStream:
    """Rows that are read as they are taken, and the names of their columns."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.columns: list[str] = [column[0] for column in cursor.description]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


@contextmanager
def streamed(db: Connection, query: Any, **parameters: Any) -> Iterator[RowStream]:
    """The rows of a query of `server.store.sql`, within a transaction of `db`."""
    is_file = isinstance(db, sqlite3.Connection)
    read = db.execute if is_file else cast("PgConnection", db).stream
    with closing(read(query.sql, parameters)) as cursor:
        yield RowStream(cursor)
