"""Checks that a node's file is sound, for `cacp doctor`; changes nothing."""

import sqlite3

from server.store.sql import SQL


def damage(db: sqlite3.Connection) -> list[str]:
    """The first errors of SQLite's integrity check; empty for a sound file."""
    return [str(line) for (line,) in SQL.integrity(db) if line != "ok"]


def broken_references(db: sqlite3.Connection) -> dict[str, int]:
    """How many rows of each table refer to a missing row."""
    counts: dict[str, int] = {}
    for (table,) in SQL.broken_references(db):
        counts[table] = counts.get(table, 0) + 1
    return counts
