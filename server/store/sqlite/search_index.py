"""The full-text index in an SQLite file, by FTS5.

It holds no text of its own: what was indexed must be given to it again when it is removed.
"""

import sqlite3
from collections.abc import Iterable, Mapping

from server.domain import search as domain
from server.domain.search import ReadableScope, SearchQuery, SearchTerm
from server.store.connection import Connection
from server.store.sql import SQL


def add(db: Connection, id: int, *, title: str, body: str, parts: str, scope: str) -> None:
    """Index a document under a number that is larger than those before."""
    SQL.add_to_search_index(db, id=id, title=title, body=body, parts=parts, scope=scope)


def remove(db: Connection, id: int, *, title: str, body: str, parts: str, scope: str) -> None:
    """Remove a document, given what it was indexed with."""
    SQL.remove_from_search_index(db, id=id, title=title, body=body, parts=parts, scope=scope)


def expression(query: SearchQuery, scopes: Iterable[ReadableScope]) -> str:
    """A query in FTS5's language, for documents of at least one of the scopes. Only letters and
    digits are in its words, so that no text of a person is syntax."""
    readable = " OR ".join(map(_readable, scopes))
    return f"{_text(query)} AND (scope : ({readable}))"


def _text(query: SearchQuery) -> str:
    columns = "{title body parts} : "
    wanted = " AND ".join(map(_term, query.wanted))
    if not query.unwanted:
        return f"({columns}({wanted}))"
    unwanted = " OR ".join(map(_term, query.unwanted))
    return f"(({columns}({wanted})) NOT ({columns}({unwanted})))"


def _term(term: SearchTerm) -> str:
    star = " *" if term.is_prefix else ""
    phrases = ['"' + " ".join(words) + '"' + star for words in domain.forms(term)]
    return phrases[0] if len(phrases) == 1 else f"({' OR '.join(phrases)})"


def _readable(scope: ReadableScope) -> str:
    kinds = _any(scope.kinds)
    return kinds if scope.places is None else f"({kinds} AND {_any(scope.places)})"


def _any(words: Iterable[str]) -> str:
    return "(" + " OR ".join(f'"{word}"' for word in words) + ")"


def is_at_fault(error: sqlite3.DatabaseError) -> bool:
    """Whether the index is at fault, and not the database."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT_VTAB" or (
        "search_index" in str(error)
    )


def counts(db: Connection, kinds: Mapping[str, str]) -> dict[str, int]:
    """How many documents of each kind it holds, by the words for kinds (the values of `kinds`).
    Reads all of it. Raises sqlite3.DatabaseError."""
    words = set(kinds.values())
    SQL.make_search_vocabulary(db)
    try:
        # Read to its end, so that nothing of it is left unseen.
        return {
            term: documents
            for term, column, documents in SQL.search_vocabulary(db)
            if column == "scope" and term in words
        }
    finally:
        SQL.drop_search_vocabulary(db)
