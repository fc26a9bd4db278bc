"""The vectors of words: what is in them, and the language in which they are asked."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.errors import InvalidInput
from server.domain.search import ReadableScope, parse, searchable
from server.store.postgresql import search_index
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.search_index import PLACE_MAX, PLACES_MAX, expression, vector
from tests.support.postgresql import database

MAIL = ReadableScope(("kindmail",), None)


@pytest.fixture(scope="module")
def db() -> Iterator[PgConnection]:
    with database() as url, closing(PgConnection(url)) as connection:
        yield connection


def test_a_vector_has_places_and_a_scope() -> None:
    assert vector(("Users API", "the users_api, it's", ""), "kindmail a1") == (
        "'users':1,5 'api':2,6 'the':4 'it':7 's':8 '=kindmail' '=a1'"
    )


def test_a_query_is_in_its_language() -> None:
    own = ReadableScope(("kindmail",), ("a1", "opentohumans"))
    shared = ReadableScope(("kindcontext",), None)
    assert expression(parse('createUser "a B" pay* -draft'), (own, shared)) == (
        "(('createuser') | ('create' <-> 'user')) & (('a' <-> 'b')) & (('pay':*)) & !(('draft'))"
        " & ((('=kindmail') & ('=a1' | '=opentohumans')) | ('=kindcontext'))"
    )


def matches(db: PgConnection, text: str, query: str) -> bool:
    asked = "SELECT CASE WHEN CAST(? AS TSVECTOR) @@ CAST(? AS TSQUERY) THEN 1 ELSE 0 END"
    given_words = vector((text, "", ""), "kindmail")
    [found] = db.execute(asked, (given_words, expression(parse(query), (MAIL,)))).fetchone()
    return bool(found)


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("users", True),
        ("USERS created", True),
        ('"the users"', True),
        ('"users the"', False),
        ("us*", True),
        ("us", False),
        ('"the us"*', False),
        ("emigre", True),
        ("users -created", False),
        ("users -deleted", True),
        ("kindmail", False),
        ("=kindmail", False),
        ("kind*", False),
        ("2024", True),
        ("src/users.py", True),
    ],
)
def test_words_are_found_as_by_fts5(db: PgConnection, query: str, is_found: bool) -> None:
    text = "The users were created by émigrés... Émigré; src/users.py, 2024-05-01 1e5"
    assert matches(db, text, query) == is_found


def test_a_text_of_any_length_is_taken(db: PgConnection) -> None:
    long = "x" * 20_000
    assert matches(db, long, long)
    assert matches(db, "same " * (PLACES_MAX + 100), "same")
    many = " ".join(f"w{number}" for number in range(PLACE_MAX + 100))
    assert matches(db, many, f"w{PLACE_MAX + 50}")


@given(text=st.text(max_size=80))
def test_no_text_of_a_person_is_a_syntax_error(db: PgConnection, text: str) -> None:
    try:
        parse(text)
    except InvalidInput:
        return
    assert matches(db, searchable(text), text) or "-" in text


def test_a_document_is_added_and_removed(db: PgConnection) -> None:
    at = {"kind": "mail", "project_id": "", "entity_id": "m1"}
    db.execute(
        "INSERT INTO search_docs (id, kind, project_id, entity_id, indexed)"
        " VALUES (:id, :kind, :project_id, :entity_id, :indexed)",
        {**at, "id": 7, "indexed": b""},
    )
    columns = {"title": "Users", "body": "a list", "parts": "", "scope": "kindmail a1"}
    search_index.add(db, 7, **columns)
    assert search_index.counts(db, {"mail": "kindmail"}) == {"kindmail": 1}
    search_index.remove(db, 7, **columns)
    assert search_index.counts(db, {"mail": "kindmail"}) == {}
    search_index.add(db, 8, **columns)
    assert search_index.counts(db, {"mail": "kindmail"}) == {"": 1}, "of no document"
