"""Reads of any number of rows in one transaction, some at a time."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from server.store.postgresql.connection import PgConnection
from server.store.sql import POSTGRESQL

BATCH = 500
SECONDS = 3_600.0
"""How long one statement may take."""


class StreamedRows:
    """The rows of a statement, in a transaction that lasts as long as they are read."""

    def __init__(self, db: PgConnection, number: int, sql: str, parameters: Any) -> None:
        self._db = db
        self._name = f"rows_{number}"
        text = f"DECLARE {self._name} NO SCROLL CURSOR FOR {POSTGRESQL.get(sql, sql)}"
        db.execute(text, parameters)
        self._batch = self._fetch()
        self.columns = [column for (column,) in self._batch.description or ()]

    def _fetch(self) -> Any:
        batch = self._db.execute(f"FETCH {BATCH} FROM {self._name}")
        self._db.settle()
        return batch

    def __iter__(self) -> Iterator[Any]:
        while rows := self._batch.fetchall():
            yield from rows
            self._batch = self._fetch()

    def close(self) -> None:
        """End the statement."""
        self._db.execute(f"CLOSE {self._name}")


@contextmanager
def snapshot(url: str) -> Iterator[PgConnection]:
    """A consistent, read-only view of a database, for as long as it takes to read all of it."""
    with closing(PgConnection(url, seconds=SECONDS)) as db:
        db.begin_reading()
        db.execute(_UNLIMITED, (str(int(SECONDS * 1000)),))
        yield db


_UNLIMITED = (
    "SELECT set_config('statement_timeout', ?, true),"
    " set_config('idle_in_transaction_session_timeout', '0', true)"
)
