"""Full-text search: what a query means, and what is shown of a hit.

A word is a run of letters and digits, without regard to case and accents, as in SQLite's tokenizer
`unicode61`. So `user_id`, `user-id` and `src/user/id` are found by their parts. Words such as
`createUser` are indexed whole and by their parts too (`camel_parts`).
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from schemas.plain import clean
from server.domain.errors import InvalidInput

INDEXED_MAX = 20_000
"""How many characters of a document are indexed, from its beginning."""
SNIPPET_WIDTH = 200
BEFORE_MARK = 60
"""About how many characters of a snippet stand before its first mark."""

_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'(-?)"([^"]*)(?:"|$)|(\S+)')
_IS_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CAMEL_WORD = re.compile(
    r"(?<![^\W_])[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*(?![^\W_])"
)
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class SearchTerm(NamedTuple):
    """Words that must follow each other; of the last one only the beginning if `is_prefix`."""

    words: tuple[str, ...]
    is_prefix: bool = False


class SearchQuery(NamedTuple):
    """What all hits contain, and what none of them does."""

    wanted: tuple[SearchTerm, ...]
    unwanted: tuple[SearchTerm, ...]


class ReadableScope(NamedTuple):
    """Documents that a reader may read, by the words of their scope: one of `kinds`, and one of
    `places`, or any place when that is None. The words have only letters and digits."""

    kinds: tuple[str, ...]
    places: tuple[str, ...] | None


class Snippet(NamedTuple):
    """A piece of a text, and where words of the query are in it: [from, to) in characters."""

    text: str
    marks: list[list[int]]


# --- what is indexed ----------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """The text of a JSON value: a line for each text and number in it, with its name, up to the
    limit."""
    lines: list[str] = []
    left = INDEXED_MAX
    for line in _lines(value, ""):
        lines.append(line[:left])
        left -= len(line) + 1
        if left <= 0:
            break
    return searchable("\n".join(lines))


def searchable(text: str) -> str:
    """A text as it is indexed and shown: without invisible characters, in composed form."""
    return clean(unicodedata.normalize("NFC", text[:INDEXED_MAX]))


def _lines(value: Any, name: str) -> Iterator[str]:
    """The scalars of a JSON value with their names, in order. Not recursive: agents choose how deep
    their values are."""
    waiting: list[tuple[str, Any]] = [(name, value)]
    while waiting:
        label, current = waiting.pop()
        if isinstance(current, dict):
            waiting.extend(reversed([(str(key), member) for key, member in current.items()]))
        elif isinstance(current, list):
            # The name stands before the first of them only.
            waiting.extend(("", member) for member in reversed(current[1:]))
            waiting.extend((label, member) for member in current[:1])
        elif isinstance(current, str | int | float) and not isinstance(current, bool):
            yield f"{label}: {current}" if label else str(current)


def camel_parts(text: str) -> str:
    """The parts of each word such as `createUser` in a text, each word once.

    >>> camel_parts("createUser calls HTTPServer")
    'create User HTTP Server'
    """
    camel = dict.fromkeys(_CAMEL_WORD.findall(text))
    return " ".join(part for word in camel for part in _CAMEL_PART.findall(word))


def words_of(text: str) -> Iterator[str]:
    """The words of a text in order, as they are compared."""
    return (fold(word) for word in _WORD.findall(text))


# --- the query ----------------------------------------------------------------------------------


def parse(text: str) -> SearchQuery:
    """What a person asks for: `words` in any order, `"a phrase"`, `prefix*`, and `-word` for what
    no hit contains. Every text has a meaning. Raises InvalidInput when nothing is asked for."""
    wanted: list[SearchTerm] = []
    unwanted: list[SearchTerm] = []
    for minus, phrase, bare in _TERM.findall(clean(unicodedata.normalize("NFC", text))):
        negated = bool(minus) or (len(bare) > 1 and bare.startswith("-"))
        words = tuple(_WORD.findall(phrase or bare))
        if words:
            term = SearchTerm(words, is_prefix=bare.endswith("*"))
            (unwanted if negated else wanted).append(term)
    if not wanted:
        raise InvalidInput(
            "query: must contain a word to search for" + (", not only -words" if unwanted else ""),
            path="query",
        )
    return SearchQuery(tuple(wanted), tuple(unwanted))


def forms(term: SearchTerm) -> list[tuple[str, ...]]:
    """The sequences of words of which one is enough: the term's own words, and their parts if there
    are any. Only letters and digits are in them.

    >>> forms(SearchTerm(("createUser", "id")))
    [('createUser', 'id'), ('create', 'User', 'id')]
    """
    parts = tuple(part for word in term.words for part in _split(word))
    return [term.words] if parts == term.words else [term.words, parts]


def _split(word: str) -> list[str]:
    return _CAMEL_PART.findall(word) if _IS_CAMEL.search(word) and word.isascii() else [word]


# --- what is shown ------------------------------------------------------------------------------


def snippet(text: str, query: SearchQuery, width: int = SNIPPET_WIDTH) -> Snippet:
    """The piece of a text around the first word of the query in it, or its beginning."""
    marks = list(_marks(text, query.wanted))
    begin = 0
    if marks and marks[0][1] > width - BEFORE_MARK:
        begin = max(0, marks[0][0] - BEFORE_MARK)
        # Not within a word, unless that is long.
        space = re.compile(r"\s").search(text, begin, marks[0][0])
        begin = space.end() if space else begin
    end = min(len(text), begin + width)
    lead, tail = "…" if begin else "", "…" if end < len(text) else ""
    # Of the same length, so that the marks stay where they are.
    shown = re.sub(r"\s", " ", text[begin:end])
    shift = len(lead) - begin
    inside = [
        [start + shift, min(stop, end) + shift] for start, stop in marks if begin <= start < end
    ]
    return Snippet(lead + shown + tail, inside)


def _marks(text: str, terms: Sequence[SearchTerm]) -> Iterator[list[int]]:
    """Where words of the terms are in a text, in order."""
    whole: set[str] = set()
    beginnings: list[str] = []
    for term in terms:
        for words in (term.words, [part for word in term.words for part in _split(word)]):
            folded = [fold(word) for word in words]
            whole.update(folded)
            if term.is_prefix:
                beginnings.append(folded[-1])
    starts = tuple(beginnings)
    for match in _WORD.finditer(text):
        word = fold(match[0])
        if word in whole or word.startswith(starts or ("\0",)):
            yield [match.start(), match.end()]
        elif _IS_CAMEL.search(match[0]):
            for part in _CAMEL_PART.finditer(match[0]):
                folded_part = fold(part[0])
                if folded_part in whole or folded_part.startswith(starts or ("\0",)):
                    yield [match.start() + part.start(), match.start() + part.end()]


def fold(word: str) -> str:
    """A word without regard to case and accents."""
    if word.isascii():
        return word.lower()
    split = unicodedata.normalize("NFKD", word)
    return "".join(char for char in split if not unicodedata.combining(char)).lower()
