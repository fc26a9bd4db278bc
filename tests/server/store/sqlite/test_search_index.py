"""FTS5: its query language, and how it is told that it is damaged."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.errors import InvalidInput
from server.domain.search import ReadableScope, parse
from server.store.sql import SQL
from server.store.sqlite import search_index

EVERYTHING = ReadableScope(("kindmail", "kindcontext", "kindcontract"), None)


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        SQL.make_search_index(db)
        yield db


def found(db: sqlite3.Connection, text: str, *scopes: ReadableScope) -> list[int]:
    match = search_index.expression(parse(text), scopes or (EVERYTHING,))
    rows = db.execute("SELECT rowid FROM search_index WHERE search_index MATCH ?", (match,))
    return [number for (number,) in rows]


def test_a_query_is_in_its_language() -> None:
    own = ReadableScope(("kindmail",), ("a1", "opentohumans"))
    shared = ReadableScope(("kindcontext",), None)
    assert search_index.expression(parse('createUser "a b" pay* -draft'), (own, shared)) == (
        '(({title body parts} : (("createUser" OR "create User") AND "a b" AND "pay" *))'
        ' NOT ({title body parts} : ("draft")))'
        ' AND (scope : ((("kindmail") AND ("a1" OR "opentohumans")) OR ("kindcontext")))'
    )


@given(text=st.text(max_size=80))
def test_no_text_of_a_person_is_a_syntax_error(text: str) -> None:
    try:
        query = parse(text)
    except InvalidInput:
        return
    with closing(sqlite3.connect(":memory:")) as db:
        SQL.make_search_index(db)
        match = search_index.expression(query, (EVERYTHING,))
        asked = db.execute("SELECT 1 FROM search_index WHERE search_index MATCH ?", (match,))
        assert asked.fetchall() == []


def test_a_document_is_added_and_removed(empty: sqlite3.Connection) -> None:
    columns = {"title": "Users", "body": "a list", "parts": "", "scope": "kindmail a1"}
    search_index.add(empty, 7, **columns)
    assert found(empty, "list") == [7]
    assert found(empty, "kindmail") == []
    assert found(empty, "list", ReadableScope(("kindmail",), ("a2",))) == []
    assert search_index.counts(empty, {"mail": "kindmail"}) == {"kindmail": 1}
    search_index.remove(empty, 7, **columns)
    assert found(empty, "list") == []
    assert search_index.counts(empty, {"mail": "kindmail"}) == {}


def test_its_own_errors_are_told_from_those_of_the_database(empty: sqlite3.Connection) -> None:
    empty.execute("DROP TABLE search_index_data")
    with pytest.raises(sqlite3.DatabaseError) as of_index:
        found(empty, "list")
    assert search_index.is_at_fault(of_index.value)
    assert not search_index.is_at_fault(sqlite3.DatabaseError("database disk image is malformed"))
