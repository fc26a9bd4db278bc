"""The named queries of `queries/*.sql`, loaded once."""

import re
from pathlib import Path
from typing import Any

import aiosql

Row = tuple[Any, ...]

SQL: Any = aiosql.from_path(Path(__file__).parent / "queries", "sqlite3")
"""Each query as a function of a connection and named parameters."""

_NAMED = re.compile(r"(?<!:):([a-z]\w*)")


def plain(query: Any) -> str:
    """A query's text for `execute` on the hot path, with positional parameters. It avoids aiosql's
    own call, and positional parameters cost the driver half of named ones.

    The parameters are in the order of the text. Raises ValueError when one occurs twice.
    """
    text: str = query.sql
    names = _NAMED.findall(text)
    if len(set(names)) < len(names):
        raise ValueError(f"a parameter occurs twice in: {text}")
    return _NAMED.sub("?", text)


def _of_postgresql() -> dict[str, str]:
    """Each statement that differs on PostgreSQL, by the text for SQLite."""
    suffix = "_postgresql"
    names = [name for name in SQL.available_queries if name.endswith(suffix)]
    return {getattr(SQL, name.removesuffix(suffix)).sql: getattr(SQL, name).sql for name in names}


POSTGRESQL = _of_postgresql()
"""Statements that differ on PostgreSQL. They stand beside each other: `-- name: x` is SQLite's,
`-- name: x_postgresql` PostgreSQL's."""
