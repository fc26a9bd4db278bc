"""Is a node's file sound? For `cacp doctor`; changes nothing."""

import sqlite3

from server.store.migrate import migrations
from server.store.sql import SQL


def damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite finds broken in the file, in its words; the first few lines at most."""
    return [str(line) for (line,) in SQL.integrity(db) if line != "ok"]


def broken_references(db: sqlite3.Connection) -> dict[str, int]:
    """How many rows of each table refer to something that isn't there."""
    counts: dict[str, int] = {}
    for (table,) in SQL.broken_references(db):
        counts[table] = counts.get(table, 0) + 1
    return counts


def schema_version(db: sqlite3.Connection) -> int:
    """The number of the last migration that was run; 0 when it is no node's file."""
    return int(SQL.meta_value(db, name="schema_version")) if SQL.has_meta(db) else 0


def known_version() -> int:
    """The number of the newest migration of this release."""
    return migrations()[-1][0]


def newest_stamp(db: sqlite3.Connection) -> int:
    """The stamp of the newest change; 0 when nothing has changed yet."""
    return int(SQL.newest_stamp(db) or 0)
