"""Regex subset matching (acpcomply, Expectations).

String leaves are regexes (`comply.patterns`), searched in the stringified value; another leaf must
have the value's text, so that `0` is met by `"0"`. Fields that are not named are ignored. Each
element of an expected list needs an element that meets it, in any order. Three operators go beyond:
`{"$absent": [names]}` for fields that must not be there, `{"$every": expected}` and
`{"$count": regex}` for lists.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from comply.patterns import occurs
from comply.template import text_of

Item = TypeVar("Item")
ABSENT, EVERY, COUNT = "$absent", "$every", "$count"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One place where a message differs from the expectation."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path or 'the message'}: {self.problem}"


def matches(expected: JsonValue, actual: JsonValue) -> bool:
    """Raises PatternError."""
    return next(differences(expected, actual), None) is None


def differences(expected: JsonValue, actual: JsonValue, path: str = "") -> Iterator[Mismatch]:
    """The mismatches of `actual`; none when it meets the expectation. Raises PatternError."""
    if isinstance(expected, dict):
        yield from _object(expected, actual, path)
    elif isinstance(expected, list):
        yield from _list(expected, actual, path)
    elif isinstance(expected, str):
        if not occurs(expected, text_of(actual)):
            yield Mismatch(path, f"expected {expected}, got {_short(actual)}")
    elif text_of(expected) != text_of(actual):
        yield Mismatch(path, f"expected {text_of(expected)}, got {_short(actual)}")


def _object(expected: dict[str, JsonValue], actual: JsonValue, path: str) -> Iterator[Mismatch]:
    if EVERY in expected or COUNT in expected:
        yield from _whole_list(expected, actual, path)
        return
    if not isinstance(actual, dict):
        yield Mismatch(path, f"expected an object, got {_short(actual)}")
        return
    for name, wanted in expected.items():
        below = f"{path}.{name}" if path else name
        if name == ABSENT:
            for gone in wanted if isinstance(wanted, list) else [wanted]:
                if gone in actual:
                    there = f"{path}.{gone}" if path else str(gone)
                    yield Mismatch(there, f"must not be there, is {_short(actual[str(gone)])}")
        elif name not in actual:
            yield Mismatch(below, f"expected {_short(wanted)}, is missing")
        else:
            yield from differences(wanted, actual[name], below)


def _list(expected: list[JsonValue], actual: JsonValue, path: str) -> Iterator[Mismatch]:
    if not isinstance(actual, list):
        yield Mismatch(path, f"expected a list, got {_short(actual)}")
        return
    for place, wanted in enumerate(expected):
        if not any(matches(wanted, item) for item in actual):
            yield Mismatch(f"{path}[{place}]", f"no element is {_short(wanted)}")


def _whole_list(expected: dict[str, JsonValue], actual: JsonValue, path: str) -> Iterator[Mismatch]:
    if not isinstance(actual, list):
        yield Mismatch(path, f"expected a list, got {_short(actual)}")
        return
    if COUNT in expected:
        yield from differences(expected[COUNT], len(actual), f"{path} (how many)")
    if EVERY in expected:
        for place, item in enumerate(actual):
            yield from differences(expected[EVERY], item, f"{path}[{place}]")


def _short(value: JsonValue, width: int = 120) -> str:
    text = text_of(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def assign(
    expected: Sequence[JsonValue],
    items: Sequence[Item],
    fits: Callable[[JsonValue, Item], bool],
) -> dict[int, int]:
    """Assigns items to expectations, as many as possible; an item meets one at most."""
    taken: dict[int, int] = {}

    def place(wanted: int, tried: set[int]) -> bool:
        for at, item in enumerate(items):
            if at in tried or not fits(expected[wanted], item):
                continue
            tried.add(at)
            if at not in taken or place(taken[at], tried):
                taken[at] = wanted
                return True
        return False

    for wanted in range(len(expected)):
        place(wanted, set())
    return {wanted: at for at, wanted in sorted(taken.items(), key=lambda pair: pair[1])}


def look_up(value: JsonValue, path: str) -> JsonValue:
    """The value at a dotted path, list elements by number. Raises KeyError.

    >>> look_up({"repos": [{"name": "api"}]}, "repos.0.name")
    'api'
    """
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise KeyError(path)
    return value


def at(value: JsonValue, path: str) -> JsonValue:
    """Like `look_up`, but None when the path does not exist."""
    try:
        return look_up(value, path)
    except KeyError:
        return None
