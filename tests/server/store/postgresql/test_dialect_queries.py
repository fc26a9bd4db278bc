"""Every named query is understood by PostgreSQL, and JSON functions say what SQLite's say."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import orjson
import pytest

from server.store.postgresql.connection import PgConnection
from server.store.postgresql.dialect import translate
from server.store.sql import POSTGRESQL, SQL
from tests.support.postgresql import database

SQLITE_ONLY = {
    "add_to_search_index",
    "broken_references",
    "drop_search_vocabulary",
    "integrity",
    "make_search_vocabulary",
    "remove_from_search_index",
    "search_vocabulary",
}
NAMES = [
    name
    for name in sorted(SQL.available_queries)
    if not name.endswith(("_cursor", "_postgresql")) and name not in SQLITE_ONLY
]


@pytest.fixture(scope="module")
def db() -> Iterator[PgConnection]:
    with database() as url, closing(PgConnection(url)) as connection:
        yield connection


def test_every_query_fits_the_schema(db: PgConnection) -> None:
    for number, name in enumerate(NAMES):
        text = getattr(SQL, name).sql
        statement = translate(POSTGRESQL.get(text, text)).text
        try:
            db.execute(f"PREPARE q{number} AS {statement}")
        except Exception as error:
            pytest.fail(f"{name}: {error}")


def test_a_statement_of_sqlite_alone_is_not_understood(db: PgConnection) -> None:
    """So the list of them has none too many."""
    for name in SQLITE_ONLY - {"drop_search_vocabulary"}:
        with pytest.raises(Exception, match=r"syntax|does not exist"):
            db.execute(f"PREPARE q AS {translate(getattr(SQL, name).sql).text}")


WHOLE: dict[str, Any] = {
    "text": "a\0b",
    "list": [1, 2.5, None, "\\u0000", "\0\0"],
    "number": 5,
    "nothing": None,
    "inner": {"text": "é\ue000\0", "of": ["x"]},
    "content": {"big": "\0"},
}
DOCUMENT = orjson.dumps(WHOLE).decode()
MEMBERS = {
    "$.text": WHOLE["text"],
    "$.list": WHOLE["list"],
    "$.list[3]": WHOLE["list"][3],
    "$.list[4]": WHOLE["list"][4],
    "$.number": WHOLE["number"],
    "$.nothing": None,
    "$.absent": None,
    "$.inner": WHOLE["inner"],
    "$.inner.text": WHOLE["inner"]["text"],
    "$.inner.of[0]": "x",
}


def as_extracted(member: object) -> str | None:
    return member if isinstance(member, str | None) else orjson.dumps(member).decode()


def test_a_member_is_taken_out_as_it_was_put_in(db: PgConnection) -> None:
    for path, member in MEMBERS.items():
        assert db.execute("SELECT json_extract(?, ?)", (DOCUMENT, path)).fetchone() == (
            as_extracted(member),
        )


def test_a_member_is_what_sqlite_says(db: PgConnection) -> None:
    """Of a document without NUL, before which SQLite ends a text."""
    whole = {"text": "a\\u000", "list": [1, None, "é\ue000"], "n": 5, "inner": {"of": ["x"]}}
    document = orjson.dumps(whole).decode()
    with closing(sqlite3.connect(":memory:")) as sqlite:
        for path in ("text", "list", "list[1]", "list[2]", "n", "inner", "inner.of", "inner.of[0]"):
            asked = ("SELECT json_extract(?, ?)", (document, f"$.{path}"))
            [expected] = sqlite.execute(*asked).fetchone()
            [found] = db.execute(*asked).fetchone()
            assert found == (expected if expected is None else str(expected)), path


def test_the_members_of_a_list(db: PgConnection) -> None:
    given = orjson.dumps(["a\0", "\ue000", ["b\0", "c"], {"d": 1}]).decode()
    rows = db.execute("SELECT value FROM json_each(?)", (given,)).fetchall()
    assert rows == [("a\0",), ("\ue000",), ('["b\\u0000","c"]',), ('{"d":1}',)]


def test_a_content_is_left_out(db: PgConnection) -> None:
    [text] = db.execute("SELECT json_without_content(?)", (DOCUMENT,)).fetchone()
    assert orjson.loads(text) == WHOLE | {"content": {}}


def test_the_larger_of_two(db: PgConnection) -> None:
    asked = (
        "SELECT max(CAST(3 AS BIGINT), 4), max(CAST('b' AS TEXT), 'a'),"
        " max(CAST(NULL AS BIGINT), 4)"
    )
    assert db.execute(asked).fetchone() == (4, "b", None)
