"""Statements with more rows than fit into memory, on either kind of database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from typing import Any, Protocol, cast

from server.store.connection import Connection

_NUMBERS = count()


class RowStream(Protocol):
    """Rows that are read as they are taken, and the names of their columns."""

    columns: list[str]

    def __iter__(self) -> Iterator[Any]: ...


class _FileRows:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self.columns = [column[0] for column in cursor.description]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


@contextmanager
def streamed(db: Connection, query: Any, **parameters: Any) -> Iterator[RowStream]:
    """The rows of a query of `server.store.sql`, within a transaction of `db`."""
    if isinstance(db, sqlite3.Connection):
        with closing(db.execute(query.sql, parameters)) as cursor:
            yield _FileRows(cursor)
        return
    from server.store.postgresql.connection import PgConnection
    from server.store.postgresql.stream import StreamedRows

    rows = StreamedRows(cast(PgConnection, db), next(_NUMBERS), query.sql, parameters)
    with closing(rows):
        yield rows
