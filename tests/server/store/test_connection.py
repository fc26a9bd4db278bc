"""What all connections have in common."""

import sqlite3

import psycopg
import pytest

from server.domain.errors import Conflict
from server.store.connection import Connection, is_of_driver
from server.store.postgresql.errors import ServerSilent


@pytest.mark.parametrize(
    ("error", "is_drivers"),
    [
        (sqlite3.DatabaseError(), True),
        (sqlite3.IntegrityError(), True),
        (psycopg.errors.UniqueViolation(), True),
        (ServerSilent(), True),
        (ValueError(), False),
        (Conflict("taken"), False),
    ],
)
def test_a_drivers_errors_are_told_from_others(error: Exception, is_drivers: bool) -> None:
    assert is_of_driver(error) == is_drivers


def test_a_statement_that_is_refused_is_the_drivers_error(db: Connection) -> None:
    with pytest.raises(Exception, match="nonsense") as refused:
        db.execute("SELECT nonsense")
    assert is_of_driver(refused.value)


def test_rows_are_made_by_the_factory(db: Connection) -> None:
    db.row_factory = lambda cursor, row: dict(
        zip([column[0] for column in cursor.description], row, strict=True)
    )
    assert db.execute("SELECT 1 AS a, 'x' AS b").fetchall() == [{"a": 1, "b": "x"}]
    db.row_factory = None
    assert db.execute("SELECT 1 AS a").fetchone() == (1,)


def test_changes_are_counted(db: Connection) -> None:
    before = db.total_changes
    db.execute("SELECT 1").fetchone()
    assert db.total_changes == before
    changed = db.execute("INSERT INTO meta (name, value) VALUES (?, ?)", ("a", "1"))
    assert (changed.rowcount, db.total_changes) == (1, before + 1)
    assert not db.in_transaction
