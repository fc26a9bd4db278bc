"""What the store's functions ask of a connection, whichever database is behind it.

`Connection` has all of it, and so has `server.store.postgresql.connection.PgConnection`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Cursor(Protocol):
    """The rows that a statement returned."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    @property
    def description(self) -> Any:
        """A tuple for each column, with its name first."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Any: ...
    def executemany(self, sql: str, parameters: Any, /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def close(self) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to a node's database. Statements are in the dialect that SQLite and PostgreSQL
    share, with `:name` or `?` for parameters."""

    row_factory: Any
    """A function of cursor and row that makes what is returned for a row; None for the row."""

    @property
    def total_changes(self) -> int:
        """Grows with each change. PostgreSQL counts statements that may change something, without
        waiting for how many rows they changed."""

    @property
    def in_transaction(self) -> bool: ...

    def cursor(self) -> Cursor: ...
    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any: ...
    def close(self) -> None: ...


def is_of_driver(error: BaseException) -> bool:
    """Whether a database's driver raised an error, whichever that is."""
    return any(kind.__module__ in ("sqlite3", "psycopg") for kind in type(error).__mro__)


ReadFunction = Callable[[Connection], T]


class Read(Protocol):
    """Runs a read of a few rows (`server.store.database.Database.read`)."""

    async def __call__(self, function: ReadFunction[T], /) -> T: ...
