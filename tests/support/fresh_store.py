"""A node's database with nothing in it, of the kind that this run is about.

`TEST_STORE=postgresql` makes it one on PostgreSQL, else it is an SQLite file. Databases on
PostgreSQL are emptied and used again, as it takes a quarter of a second to make one.
"""

import atexit
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from server.domain.location import DatabaseUrl, Location
from server.store.connection import Connection
from server.store.opening import prepare
from tests.support import postgresql
from tests.support.located import ON_POSTGRESQL

_idle: list[DatabaseUrl] = []
_first: dict[DatabaseUrl, list[Any]] = {}
"""What `meta` held of each database when it was made."""


@contextmanager
def fresh_store(path: Path) -> Iterator[Location]:
    """A database with a node's tables, in which no node has been: an SQLite file at `path`, or a
    database on PostgreSQL."""
    if not ON_POSTGRESQL:
        path.write_bytes(_prepared())
        yield path
        return
    url = _idle.pop() if _idle else _made()
    try:
        yield url
    finally:
        _empty(url)
        _idle.append(url)


def content_of(db: Connection) -> list[Any]:
    """All that a database holds, to be compared with what it holds later."""
    if isinstance(db, sqlite3.Connection):
        return list(db.iterdump())
    # The last stamp is given out with each write, whether or not that changes anything.
    parts = [
        f"SELECT '{name}', CAST(t AS TEXT) FROM {name} AS t"
        for name in sorted(tables_of(db) - {"cluster"})
    ]
    return sorted(db.execute(" UNION ALL ".join(parts)).fetchall())


def tables_of(db: Connection) -> set[str]:
    """The names of a database's tables."""
    if isinstance(db, sqlite3.Connection):
        asked = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    else:
        asked = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    return {name for (name,) in db.execute(asked)}


@cache
def _prepared() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cacp.db"
        prepare(path)
        return path.read_bytes()


def _made() -> DatabaseUrl:
    url = postgresql.fresh_database()
    prepare(url)
    _first[url] = postgresql.execute(url, "SELECT name, value FROM meta")
    return url


def _empty(url: DatabaseUrl) -> None:
    with psycopg.connect(url, autocommit=True) as db, db.cursor() as cursor:
        cursor.execute(_EMPTY)
        cursor.executemany("INSERT INTO meta (name, value) VALUES (%s, %s)", _first[url])


@atexit.register
def _drop_all() -> None:
    # A server of this run goes with its files.
    if postgresql.NAMED in os.environ:
        for url in _idle:
            postgresql.drop(url)


_EMPTY = """
DO $$
DECLARE
    name TEXT;
    is_used BOOLEAN;
    used TEXT[] := '{}';
BEGIN
    FOR name IN SELECT quote_ident(relname) FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
                  AND relname NOT IN ('cluster', 'migrations', 'acp_meta') LOOP
        EXECUTE 'SELECT EXISTS (SELECT 1 FROM ' || name || ')' INTO is_used;
        IF is_used THEN
            used := used || name;
        END IF;
    END LOOP;
    IF used <> '{}' THEN
        EXECUTE 'TRUNCATE ' || array_to_string(used, ', ') || ' CASCADE';
    END IF;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false)
    FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
    UPDATE cluster SET stamp = 0 WHERE stamp > 0;
END $$
"""
