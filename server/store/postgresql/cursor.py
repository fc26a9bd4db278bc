"""What a statement returned, as values of Python."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from psycopg import pq

from server.store.postgresql.text import from_stored

_TUPLES = pq.ExecStatus.TUPLES_OK
_WHOLE = re.compile(rb"-?\d+")


def _bool(value: bytes) -> int:
    return int(value == b"t")


def _text(value: bytes) -> str:
    return from_stored(value.decode())


def _numeric(value: bytes) -> int | float:
    return int(value) if _WHOLE.fullmatch(value) else float(value)


def _bytes(value: bytes) -> bytes:
    return bytes.fromhex(value[2:].decode())


DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: _bool,
    17: _bytes,
    20: int,
    21: int,
    23: int,
    26: int,
    700: float,
    701: float,
    1700: _numeric,
}
"""How values are read, by the type's OID; others are texts."""


CHUNK_BYTES = 128 * 1024
CHUNK_ROWS_MAX = 512


def chunk_rows(rows: int, size: int) -> int:
    """How many rows to ask for next, when so many had `size` bytes: about CHUNK_BYTES of them."""
    if size > 2 * CHUNK_BYTES:
        return max(1, rows // 4)
    return min(CHUNK_ROWS_MAX, rows * 4) if size < CHUNK_BYTES // 4 else rows


class CursorOwner(Protocol):
    """What a cursor asks of its connection."""

    row_factory: Any

    def run(self, cursor: "PgCursor", sql: str, parameters: Any) -> None:
        """Run a statement for the cursor."""

    def settle(self) -> None:
        """Wait for the answers to all that was sent."""


class PgCursor:
    """The rows of a statement, or how many it changed."""

    def __init__(self, connection: CursorOwner) -> None:
        self._connection = connection
        self.rows: Sequence[Any] = ()
        self.changes_one = False
        """It stands for a change of one row, which may not be sent yet."""
        self.more: Callable[[], bool] | None = None
        """Asks for further rows, where they come bit by bit. Returns whether there are any."""
        self._next = 0
        self._result: Any = None

    def execute(self, sql: str, parameters: Any = (), /) -> "PgCursor":
        self.changes_one = False
        self.more = None
        self._result = None
        self.show(())
        self._connection.run(self, sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> "PgCursor":
        for each in parameters:
            self._connection.run(self, sql, each)
        return self

    @property
    def rowcount(self) -> int:
        if self.changes_one:
            return 1
        if self._result is None:
            self._connection.settle()
        return int(self._result.command_tuples or 0) if self._result is not None else -1

    @property
    def size(self) -> int:
        """The characters and bytes of the rows."""
        return sum(
            len(value) for row in self.rows for value in row if isinstance(value, str | bytes)
        )

    @property
    def tag(self) -> str:
        """The server's name for what it did, such as COMMIT."""
        return self._result.command_status.decode() if self._result is not None else ""

    @property
    def description(self) -> list[tuple[str]] | None:
        result = self._result
        if result is None:
            return None
        return [(result.fname(column).decode(),) for column in range(result.nfields)]

    def show(self, rows: Sequence[Any]) -> None:
        """Return these rows, for which the server was not asked."""
        self.rows = rows
        self._next = 0

    def answered(self, result: Any) -> None:
        """Take the server's answer."""
        self._result = result
        self._next = 0
        self.rows = ()
        if result.status == _TUPLES:
            decoders: list[Callable[[bytes], Any]] = [
                DECODERS.get(result.ftype(at), _text) for at in range(result.nfields)
            ]
            value = result.get_value
            self.rows = [
                tuple(
                    None if (cell := value(row, at)) is None else decode(cell)
                    for at, decode in enumerate(decoders)
                )
                for row in range(result.ntuples)
            ]

    def fetchone(self) -> Any:
        if self._next >= len(self.rows) and not (self.more is not None and self.more()):
            return None
        row = self.rows[self._next]
        self._next += 1
        factory = self._connection.row_factory
        return row if factory is None else factory(self, row)

    def fetchall(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        self.rows = []
