"""The full-text index in a PostgreSQL database: a vector of words for each document.

The words are found here, by the rules of `server.domain.search`, and not by one of PostgreSQL's
configurations: it would take `src/user/id` for the name of a file, and `3x` for a number.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from server.domain import search as domain
from server.domain.search import ReadableScope, SearchQuery, SearchTerm
from server.store.connection import Connection
from server.store.sql import SQL

PLACE_MAX = 16_383
"""The last place in a document that PostgreSQL distinguishes."""
PLACES_MAX = 255
"""The most places of one word that it keeps."""
WORD_MAX = 500
"""Characters of a word: PostgreSQL takes 2047 bytes."""
_SCOPE = "="
"""Stands before a word of a scope, so that no word of a text is one."""


def add(db: Connection, id: int, *, title: str, body: str, parts: str, scope: str) -> None:
    """Index a document under a number that is larger than those before."""
    SQL.add_search_words(db, id=id, words=vector((title, body, parts), scope))


def remove(db: Connection, id: int, **_: str) -> None:
    """Remove a document."""
    SQL.remove_search_words(db, id=id)


def vector(texts: Iterable[str], scope: str) -> str:
    """The words of texts with their places, as PostgreSQL reads a TSVECTOR. A place between two
    texts is left free, so that no phrase spans them."""
    places: dict[str, list[int]] = defaultdict(list)
    place = 0
    for text in texts:
        for word in domain.words_of(text):
            place += 1
            known = places[_cut(word)]
            if len(known) < PLACES_MAX:
                known.append(min(place, PLACE_MAX))
        place += 1
    words = [f"{_quoted(word)}:{','.join(map(str, at))}" for word, at in places.items()]
    return " ".join([*words, *(_quoted(_SCOPE + word) for word in scope.split())])


def expression(query: SearchQuery, scopes: Iterable[ReadableScope]) -> str:
    """A query as PostgreSQL reads a TSQUERY, for documents of at least one of the scopes."""
    unwanted = [f"!({_term(term)})" for term in query.unwanted]
    parts = [*(f"({_term(term)})" for term in query.wanted), *unwanted]
    return " & ".join([*parts, f"({' | '.join(map(_readable, scopes))})"])


def _term(term: SearchTerm) -> str:
    star = ":*" if term.is_prefix else ""
    return " | ".join(
        "(" + " <-> ".join(_quoted(_cut(domain.fold(word))) for word in words) + f"{star})"
        for words in domain.forms(term)
    )


def _readable(scope: ReadableScope) -> str:
    kinds = _any(scope.kinds)
    return kinds if scope.places is None else f"({kinds} & {_any(scope.places)})"


def _any(words: Iterable[str]) -> str:
    return "(" + " | ".join(_quoted(_SCOPE + word) for word in words) + ")"


def _cut(word: str) -> str:
    return word[:WORD_MAX]


def _quoted(word: str) -> str:
    """A word as PostgreSQL reads it, whatever is in it."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def counts(db: Connection, kinds: Mapping[str, str]) -> dict[str, int]:
    """How many documents of each kind it holds, by the words for kinds (the values of `kinds`)."""
    return {kinds.get(kind, ""): count for kind, count in SQL.search_words_counts(db)}
