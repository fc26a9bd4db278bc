"""What a connection knows of a statement: its text for PostgreSQL, and what it reads and writes."""

import re
from functools import cache
from typing import Any, NamedTuple

from server.store.postgresql.dialect import translate
from server.store.sql import POSTGRESQL

_WRITES = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?!SET\b)(\w+)", re.IGNORECASE)
"""Not what ON CONFLICT DO UPDATE SET does, whose table is named before."""
_READS = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)", re.IGNORECASE)
_RETURNS = re.compile(
    r"\s*(--[^\n]*\s+)*(SELECT|WITH|VALUES|SHOW|LISTEN)\b|.*\bRETURNING\b", re.I | re.S
)
_VALUE = r"(?:\$\d+|'[^']*'|\d+)"
_PLAIN_INSERT = re.compile(
    r"(\s*INSERT\s+INTO\s+\w+\s*(?:\([\w\s,]*\)\s*)?VALUES\s*)"
    rf"(\(\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\))\s*;?\s*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\$(\d+)")


class PgStatement(NamedTuple):
    """A statement as it is sent."""

    text: str
    names: tuple[str, ...] | None
    """The parameters in order; None for positional ones."""
    writes: frozenset[str]
    """The tables that it may change."""
    reads: frozenset[str]
    returns: bool
    """Whether it returns rows."""
    insert: tuple[str, str] | None
    """For an insert of one row and nothing else: its text up to the row, and the row."""

    @property
    def table(self) -> str:
        """The one table that a plain insert writes to."""
        [table] = self.writes
        return table

    def values(self, parameters: Any) -> Any:
        """The parameters in order."""
        return parameters if self.names is None else [parameters[name] for name in self.names]

    def of_rows(self, count: int) -> str:
        """The text of a plain insert for so many rows, whose parameters follow each other."""
        assert self.insert is not None
        return _of_rows(*self.insert, count)


@cache
def _of_rows(begin: str, row: str, count: int) -> str:
    width = max(int(number) for number in _NUMBER.findall(row))
    rows = (
        _NUMBER.sub(lambda number, at=at: f"${int(number[1]) + at * width}", row)  # type: ignore[misc]
        for at in range(count)
    )
    return begin + ", ".join(rows)


def prepare(sql: str) -> PgStatement:
    """Read a statement in the shared dialect. Raises ValueError as `translate` does."""
    statement = translate(POSTGRESQL.get(sql, sql))
    plain = _PLAIN_INSERT.fullmatch(statement.text)
    return PgStatement(
        statement.text,
        statement.names,
        frozenset(map(str.lower, _WRITES.findall(statement.text))),
        frozenset(map(str.lower, _READS.findall(statement.text))),
        _RETURNS.match(statement.text) is not None,
        None if plain is None or "$" not in plain[2] else (plain[1], plain[2]),
    )
