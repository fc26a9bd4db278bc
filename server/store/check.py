"""Is a node's file sound? For `cacp doctor`; changes nothing."""

import sqlite3

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


def newest_stamp(db: sqlite3.Connection) -> int:
    """The largest stamp of what is stored for the mesh; 0 when it is empty. Reads every row."""
    return int(SQL.newest_stamp(db))
