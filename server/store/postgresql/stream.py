"""A view of a whole database, for as long as it takes to read it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from server.store.postgresql.connection import PgConnection

SECONDS = 3_600.0
"""How long one statement may take."""


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
