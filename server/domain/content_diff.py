"""The differences between two contents of a contract, as lines of text."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

LINES_MAX = 60
WIDTH_MAX = 300


class BoundedDiff(NamedTuple):
    """The first lines of a difference, each cut to `WIDTH_MAX`, and how many more there are."""

    lines: list[str]
    more: int


def content_diff(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """The differences between two contents, by path: the old value, then the new one.

    >>> content_diff({"response": {"discount": "number"}}, {"response": {"cents": "integer"}})
    ('- response.discount: number', '+ response.cents: integer')
    """
    was, now = dict(_leaves(before)), dict(_leaves(after))
    lines = []
    for path in [*was, *(path for path in now if path not in was)]:
        if was.get(path) != now.get(path):
            old, new = _texts(was.get(path), now.get(path))
            lines += [] if old is None else [f"- {path}: {old}"]
            lines += [] if new is None else [f"+ {path}: {new}"]
    return tuple(lines)


def bounded_diff(before: dict[str, Any], after: dict[str, Any]) -> BoundedDiff:
    """`content_diff`, bounded in size."""
    lines = content_diff(before, after)
    shown = [line if len(line) <= WIDTH_MAX else f"{line[: WIDTH_MAX - 1]}…" for line in lines]
    return BoundedDiff(shown[:LINES_MAX], max(0, len(lines) - LINES_MAX))


def _texts(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Two JSON texts as they are shown: strings without quotes, unless that makes both alike."""
    plain = _plain(old), _plain(new)
    return (old, new) if plain[0] == plain[1] else plain


def _plain(text: str | None) -> str | None:
    return str(json.loads(text)) if text is not None and text.startswith('"') else text


def _leaves(content: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf of the content, as its path and its value in JSON."""
    if isinstance(content, dict) and content:
        for name, value in content.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    else:
        yield path, json.dumps(content, ensure_ascii=False)
