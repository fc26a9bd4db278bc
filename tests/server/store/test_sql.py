"""The named queries: each fits the schema that the migrations make."""

import re
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from server.store import sql
from server.store.connection import Connection
from server.store.sql import POSTGRESQL, SQL, plain

NAMES = sorted(SQL.available_queries)
POSTGRESQL_ONLY = {"add_search_words", "remove_search_words", "search_words_counts"}


def is_for_sqlite(name: str) -> bool:
    return not name.endswith(("_cursor", "_postgresql")) and name not in POSTGRESQL_ONLY


@pytest.mark.sqlite
@pytest.mark.parametrize("name", [name for name in NAMES if is_for_sqlite(name)])
def test_a_query_fits_the_schema(db: sqlite3.Connection, name: str) -> None:
    text = str(getattr(SQL, name).sql)
    if re.search(r"(INTO|FROM|DROP TABLE) (temp\.)?search_(index|vocabulary)", text):
        # The index and the view of its words are made when they are needed.
        SQL.make_search_index(db)
        db.execute(SQL.make_search_vocabulary.sql)
    params = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
    assert db.execute(f"EXPLAIN {text}", params).fetchall()


def test_no_query_puts_values_into_its_text() -> None:
    for name in NAMES:
        assert not re.search(r"%s|\{\w*\}|%\(", str(getattr(SQL, name).sql))


TEXTS = [file.read_text() for file in (Path(sql.__file__).parent / "queries").glob("*.sql")]


def test_every_comment_is_one_that_is_left_out() -> None:
    assert not any("/*" in text for text in TEXTS)


def test_no_name_stands_twice() -> None:
    """The later of two would silently take the place of the other."""
    found = [name for text in TEXTS for name in re.findall(r"^-- name: (\w+)", text, re.MULTILINE)]
    assert [name for name in set(found) if found.count(name) > 1] == []


def test_who_wants_to_know_is_told_how_many_rows_were_changed(db: Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    SQL.put_meta(db, name="a", value="1")
    SQL.put_meta(db, name="b", value="1")
    none = SQL.end_alarm(db, reason="r", about="a")
    for before in (1, 2):
        db.execute("INSERT INTO idempotency VALUES (?, 'h', 'r', 1)", (f"s{before}",))
    both = SQL.forget_answers(db, before=2)
    again = SQL.forget_answers(db, before=2)
    db.execute("COMMIT")
    assert [(int(rows), bool(rows)) for rows in (none, both, again)] == [
        (0, False),
        (2, True),
        (0, False),
    ]


def test_what_differs_on_postgresql_is_found_by_either_text() -> None:
    assert "json_agg" in POSTGRESQL[SQL.all_keys.sql]
    assert POSTGRESQL[plain(SQL.newest_equivocation)] == plain(SQL.newest_equivocation_postgresql)


def test_a_plain_query_takes_its_parameters_in_the_order_of_its_text() -> None:
    assert plain(SQL.put_high_water) == "UPDATE mailboxes SET high_water = ? WHERE address = ?;"


def test_a_plain_query_has_each_parameter_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        plain(SimpleNamespace(sql="SELECT 1 WHERE :a = 1 OR :a = 2"))
