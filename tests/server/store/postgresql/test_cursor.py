"""What the server returns, as the values that SQLite would return."""

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from server.store.postgresql.connection import PgConnection
from tests.support.postgresql import server


@pytest.fixture(scope="module")
def db() -> Iterator[PgConnection]:
    """A connection with a table that nobody else sees."""
    with closing(PgConnection(server())) as connection:
        connection.execute("CREATE TEMPORARY TABLE shelf (id BIGINT PRIMARY KEY, title TEXT)")
        yield connection


@pytest.fixture
def shelf(db: PgConnection) -> PgConnection:
    """The same with nothing in it."""
    db.execute("DELETE FROM shelf")
    return db


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("NULL::text", None),
        ("TRUE", 1),
        ("FALSE", 0),
        ("7::smallint", 7),
        ("-7::integer", -7),
        ("9223372036854775807", 2**63 - 1),
        ("7::oid", 7),
        ("0.5::real", 0.5),
        ("0.1::double precision", 0.1),
        ("'-Infinity'::double precision", -math.inf),
        ("sum(7::bigint)", 7),
        ("avg(5)", 5.0),
        ("1.5", 1.5),
        (f"{10**20}::numeric", 10**20),
        (r"'\x00ff'::bytea", b"\0\xff"),
        ("''::bytea", b""),
        ("'é'", "é"),
        ("''", ""),
        ("U&'a\\E000\\E001b'", "a\0b"),
        ("'2020-02-03'::date", "2020-02-03"),
        ("'x'::name", "x"),
    ],
)
def test_a_value_of_each_type(db: PgConnection, expression: str, value: object) -> None:
    row = db.execute(f"SELECT {expression}").fetchone()
    assert row is not None
    assert row == (value,)
    assert type(row[0]) is type(value)


def test_rows_are_fetched_one_by_one_and_in_a_loop(shelf: PgConnection) -> None:
    asked = "SELECT * FROM (VALUES (1), (2), (3), (4)) AS numbers"
    cursor = shelf.execute(asked)
    assert cursor.fetchone() == (1,)
    assert next(iter(cursor)) == (2,)
    assert cursor.fetchall() == [(3,), (4,)]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []


def test_a_closed_cursor_has_no_rows(shelf: PgConnection) -> None:
    cursor = shelf.execute("SELECT 1")
    cursor.close()
    assert cursor.fetchone() is None


def test_columns_have_their_names(shelf: PgConnection) -> None:
    described = shelf.execute('SELECT 1 AS one, 2 AS "Two"').description
    assert described is not None
    assert [column[0] for column in described] == ["one", "Two"]
    assert shelf.execute("SELECT id FROM shelf").description == [("id",)]


def test_a_factory_makes_each_row(shelf: PgConnection) -> None:
    shelf.row_factory = lambda cursor, row: (cursor.description[0][0], row)
    try:
        assert shelf.execute("SELECT 1 AS one").fetchone() == ("one", (1,))
        assert list(shelf.execute("SELECT 2 AS two")) == [("two", (2,))]
        assert shelf.execute("SELECT 1 WHERE FALSE").fetchone() is None
    finally:
        shelf.row_factory = None


def test_how_many_rows_were_changed(shelf: PgConnection) -> None:
    def changed(sql: str, *values: Any) -> int:
        return shelf.execute(sql, values).rowcount

    assert changed("INSERT INTO shelf VALUES (?, ?)", 1, "a") == 1
    assert changed("INSERT INTO shelf SELECT * FROM (VALUES (2, 'a'), (3, 'b')) AS more") == 2
    assert changed("INSERT INTO shelf VALUES (1, 'a') ON CONFLICT DO NOTHING") == 0
    assert changed("UPDATE shelf SET title = 'c' WHERE title = ?", "a") == 2
    assert changed("DELETE FROM shelf") == 3
    assert changed("DELETE FROM shelf") == 0


def test_one_cursor_runs_many_statements(shelf: PgConnection) -> None:
    """Nothing is left of what it returned before."""
    cursor = shelf.cursor()
    assert cursor.execute("SELECT 1 AS one").fetchone() == (1,)
    assert cursor.execute("SELECT 1 AS one").fetchone() == (1,)
    assert cursor.execute("INSERT INTO shelf VALUES (1, 'a'), (2, 'b')").rowcount == 2
    assert cursor.fetchall() == []
    assert cursor.executemany("INSERT INTO shelf VALUES (?, ?)", [(3, "c"), (4, "d")]) is cursor
    assert cursor.execute("UPDATE shelf SET title = 'x'").rowcount == 4
    assert cursor.execute("SELECT title FROM shelf").fetchall() == [("x",)] * 4


def test_the_server_names_what_it_did(shelf: PgConnection) -> None:
    assert shelf.cursor().tag == ""
    assert shelf.execute("DELETE FROM shelf").tag == "DELETE 0"
