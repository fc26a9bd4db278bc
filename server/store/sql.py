"""The named queries of `queries/*.sql`, loaded once."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosql
from aiosql.adapters.sqlite3 import SQLite3Adapter
from aiosql.query_loader import QueryLoader

from server.store.connection import Connection, Cursor

Row = tuple[Any, ...]


class ChangedRows:
    """How many rows a statement changed. On PostgreSQL only who wants to know it waits for it."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def __int__(self) -> int:
        return self._cursor.rowcount

    def __bool__(self) -> bool:
        return self._cursor.rowcount > 0


class _Adapter(SQLite3Adapter):
    def insert_update_delete(  # type: ignore[override]
        self, conn: Connection, query_name: str, sql: str, parameters: Any
    ) -> ChangedRows:
        return ChangedRows(conn.execute(sql, parameters))


class _Loader(QueryLoader):
    def load_query_data_from_sql(
        self, sql: str, ns_parts: list[str], fname: Path | str = "<unknown>"
    ) -> list[Any]:
        """The queries of a file. aiosql's own way first looks for comments in `/* */` at each
        character, which takes most of the time; the queries have none."""
        before, *queries = re.split(r"^-- name: ", sql, flags=re.MULTILINE)
        line, data = 1 + before.count("\n"), []
        for query in queries:
            data.append(self._make_query_datum(query, ns_parts, (fname, line)))
            line += query.count("\n")
        return data


SQL: Any = aiosql.from_path(Path(__file__).parent / "queries", _Adapter, loader_cls=_Loader)
"""Each query as a function of a connection and named parameters. What changes rows returns
`ChangedRows`."""

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
    texts: dict[str, str] = {}
    for name in SQL.available_queries:
        if name.endswith(suffix):
            shared, differing = getattr(SQL, name.removesuffix(suffix)), getattr(SQL, name)
            texts[shared.sql] = differing.sql
            with suppress(ValueError):
                texts[plain(shared)] = plain(differing)
    return texts


POSTGRESQL = _of_postgresql()
"""Statements that differ on PostgreSQL. They stand beside each other: `-- name: x` is SQLite's,
`-- name: x_postgresql` PostgreSQL's."""
