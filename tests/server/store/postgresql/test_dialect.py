"""Parameters are numbered, and only where they are parameters."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.store.postgresql.connection import PgConnection
from server.store.postgresql.dialect import translate
from tests.support.postgresql import server


@pytest.fixture(scope="module")
def db() -> Iterator[PgConnection]:
    with closing(PgConnection(server())) as connection:
        yield connection


def test_a_name_has_one_number_wherever_it_stands() -> None:
    assert translate("SELECT :b, :a WHERE :b = :_c2") == (
        "SELECT $1, $2 WHERE $1 = $3",
        ("b", "a", "_c2"),
    )


def test_each_mark_has_its_own() -> None:
    assert translate("SELECT ?, ? WHERE ? = 1") == ("SELECT $1, $2 WHERE $3 = 1", None)


def test_a_statement_without_parameters_takes_none() -> None:
    assert translate("SELECT 1") == ("SELECT 1", ())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':a ?'",
        "SELECT 'it''s :a'",
        "SELECT '-- :a', '/* ? */'",
        'SELECT 1 AS ":a ?"',
        'SELECT 1 AS "a"":b"',
        "SELECT 1 -- :a, or ?",
        "SELECT 1 /* :a\n ? */ + 1",
        "SELECT CAST(1 AS text)::bigint",
        "SELECT '1'::text::bigint",
    ],
)
def test_what_looks_like_a_parameter_is_left(text: str, db: PgConnection) -> None:
    assert translate(text) == (text, ())
    assert db.execute(text).fetchone() is not None


def test_parameters_after_what_looks_like_one(db: PgConnection) -> None:
    text = "SELECT ':x', CAST(:a AS text) /* ' */, ':y'::text, :b::bigint -- :z"
    numbered, names = translate(text)
    assert names == ("a", "b")
    assert "CAST($1 AS text)" in numbered
    assert "$2::bigint" in numbered
    assert db.execute(text, {"a": "?", "b": 2}).fetchone() == (":x", "?", ":y", 2)


@pytest.mark.parametrize("text", ["SELECT :a, ?", "SELECT ?, :a"])
def test_both_kinds_in_one_text_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="with and without names"):
        translate(text)
    assert translate("SELECT :a, '?'").names == ("a",)


def test_an_index_is_left_to_the_planner() -> None:
    text = "SELECT x FROM a INDEXED BY a_by_x WHERE x = :x"
    assert translate(text).text == "SELECT x FROM a WHERE x = $1"
    assert translate("DELETE FROM a indexed\n by a_by_x").text == "DELETE FROM a "


LITERALS = st.text(st.sampled_from("':?-\"/*\n éa"), max_size=10)


@given(LITERALS, LITERALS)
def test_it_reads_texts_as_sqlite_does(db: PgConnection, literal: str, comment: str) -> None:
    """Whatever is in a literal and in a comment, the two databases return the same."""
    quoted = "'" + literal.replace("'", "''") + "'"
    inner = comment.replace("*/", "").replace("/*", "").strip("/*")
    line = comment.replace("\n", "")
    text = f"SELECT {quoted}, CAST(:a AS TEXT) /* {inner} */, {quoted} -- {line}"
    with closing(sqlite3.connect(":memory:")) as sqlite:
        expected = sqlite.execute(text, {"a": comment}).fetchone()
    assert db.execute(text, {"a": comment}).fetchone() == expected
