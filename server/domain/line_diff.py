"""Two contents of a contract as lines of JSON beside each other, with the words marked that differ.

Contents may be large and hostile: the lines that are compared, the rows and the characters of a
line that are shown are bounded, and what is left out is counted.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

import orjson

from schemas.contract_diff import RowKind
from schemas.plain import escaped

CONTEXT = 3
"""Lines that are shown around a difference."""
ROWS_MAX = 400
LINES_MAX = 2_000
"""Lines of each content that are compared, from the first that differs on."""
WIDTH_MAX = 400
WORDS_MAX = 300_000
"""Pairs of words that may have to be compared; of later lines only what both begin and end with is
found."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


class LinePart(NamedTuple):
    """A part of a line, and whether the other content has another there."""

    text: str
    changed: bool


class DiffLine(NamedTuple):
    """A line of a content: its number, its text in parts, and how many characters were cut."""

    number: int
    parts: list[LinePart]
    cut: int


class DiffRow(NamedTuple):
    """A row of two contents beside each other. A `gap` stands for `skipped` equal lines."""

    kind: RowKind
    before: DiffLine | None = None
    after: DiffLine | None = None
    skipped: int = 0


class LineDiff(NamedTuple):
    """`more` counts the rows and lines that were left out."""

    rows: list[DiffRow]
    more: int


def json_lines(content: Any) -> list[str]:
    """Content as JSON for readers, line by line. `escaped` makes its invisible characters seen."""
    try:
        text = orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        text = json.dumps(content, ensure_ascii=False, indent=2)
    return text.split("\n")


def line_diff(before: Any, after: Any) -> LineDiff:
    """The lines in which two contents differ, with `CONTEXT` equal lines around each place."""
    was, now = json_lines(before), json_lines(after)
    start = _common(was, now)
    if start == len(was) == len(now):
        return LineDiff([], 0)
    end = min(_common(was[::-1], now[::-1]), len(was) - start, len(now) - start)
    ends = len(was) - end, len(now) - end
    was_middle = was[start : min(ends[0], start + LINES_MAX)]
    now_middle = now[start : min(ends[1], start + LINES_MAX)]
    left_out = ends[0] + ends[1] - 2 * start - len(was_middle) - len(now_middle)
    rows = list(_rows(was_middle, now_middle, start))
    before, after = min(start, CONTEXT), 0 if left_out else min(end, CONTEXT)
    shown = [
        *_gap(start - before),
        *_bounded(
            [
                *_equal(was, now, start - before, start - before, before),
                *rows,
                *_equal(was, now, *ends, after),
            ]
        ),
        *_gap(0 if left_out else end - after),
    ]
    return LineDiff(shown[:ROWS_MAX], max(0, len(shown) - ROWS_MAX) + left_out)


def _gap(lines: int) -> list[DiffRow]:
    return [DiffRow("gap", skipped=lines)] if lines else []


def _common(was: list[str], now: list[str]) -> int:
    """How many lines both begin with."""
    for count, (earlier, later) in enumerate(zip(was, now, strict=False)):
        if earlier != later:
            return count
    return min(len(was), len(now))


class _Row(NamedTuple):
    """A row before it is shown: the places of its lines, and their text."""

    kind: RowKind
    before: tuple[int, str] | None
    after: tuple[int, str] | None


def _equal(was: list[str], now: list[str], i: int, j: int, count: int) -> Iterator[_Row]:
    for step in range(count):
        yield _Row("equal", (i + step, was[i + step]), (j + step, now[j + step]))


def _rows(was: list[str], now: list[str], start: int) -> Iterator[_Row]:
    for tag, i, i_end, j, j_end in SequenceMatcher(None, was, now).get_opcodes():
        old = [(start + place, was[place]) for place in range(i, i_end)]
        new = [(start + place, now[place]) for place in range(j, j_end)]
        for earlier, later in zip_longest(old, new):
            kind: RowKind = "equal" if tag == "equal" else "changed"
            if earlier is None or later is None:
                kind = "added" if earlier is None else "removed"
            yield _Row(kind, earlier, later)


def _bounded(rows: list[_Row]) -> Iterator[DiffRow]:
    """The rows near a difference, and gaps in between."""
    words = _Words()
    for kind, group in _groups(rows):
        if kind == "gap":
            yield DiffRow("gap", skipped=len(group))
        else:
            for row in group:
                yield words.shown(row)


def _groups(rows: list[_Row]) -> Iterator[tuple[str, list[_Row]]]:
    """Rows that are shown, and in between those that are far from any difference."""
    near = [False] * len(rows)
    for place, row in enumerate(rows):
        if row.kind != "equal":
            low, high = max(0, place - CONTEXT), min(len(rows), place + CONTEXT + 1)
            near[low:high] = [True] * (high - low)
    group: list[_Row] = []
    for place, row in enumerate(rows):
        if group and near[place] != near[place - 1]:
            yield ("shown" if near[place - 1] else "gap"), group
            group = []
        group.append(row)
    if group:
        yield ("shown" if near[-1] else "gap"), group


class _Words:
    """Rows as they are shown, with the words marked that differ."""

    def __init__(self) -> None:
        self._left = WORDS_MAX

    def shown(self, row: _Row) -> DiffRow:
        before, after = row.before and _cut(*row.before), row.after and _cut(*row.after)
        if row.kind == "changed" and before and after:
            old, new = self._marked(before.parts[0].text, after.parts[0].text)
            before, after = before._replace(parts=old), after._replace(parts=new)
        return DiffRow(row.kind, before, after)

    def _marked(self, old: str, new: str) -> tuple[list[LinePart], list[LinePart]]:
        """Two lines in parts, with the words marked that the other has not."""
        was, now = _WORDS.findall(old), _WORDS.findall(new)
        start = _common(was, now)
        end = min(_common(was[::-1], now[::-1]), len(was) - start, len(now) - start)
        marks = [
            (False, was[:start], now[:start]),
            *self._compared(was[start : len(was) - end], now[start : len(now) - end]),
            (False, was[len(was) - end :], now[len(now) - end :]),
        ]
        old_parts = [LinePart("".join(words), changed) for changed, words, _ in marks if words]
        new_parts = [LinePart("".join(words), changed) for changed, _, words in marks if words]
        return old_parts, new_parts

    def _compared(
        self, was: list[str], now: list[str]
    ) -> Iterator[tuple[bool, list[str], list[str]]]:
        # Repeated words are compared with each other, again and again.
        self._left -= len(was) * len(now)
        if self._left < 0:
            yield True, was, now
            return
        matcher = SequenceMatcher(None, was, now, autojunk=False)
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            yield tag != "equal", was[i:i_end], now[j:j_end]


def _cut(place: int, text: str) -> DiffLine:
    """A line, of which every character is seen."""
    shown = escaped(text[:WIDTH_MAX])[:WIDTH_MAX]
    return DiffLine(place + 1, [LinePart(shown, False)], max(0, len(text) - WIDTH_MAX))


def unified(
    rows: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, Mapping[str, Any] | None, int]]:
    """Rows as cacp/contract/diff gives them, one below the other: a mark (`-`, `+` or a blank) with
    its line, and `…` with the number of lines that a gap stands for. Where lines changed, the old
    ones come first."""
    new: list[Mapping[str, Any]] = []
    for row in rows:
        if row["kind"] not in ("changed", "added", "removed"):
            yield from (("+", line, 0) for line in new)
            new = []
        if row["kind"] == "gap":
            yield "…", None, row["skipped"]
        elif row["kind"] == "equal":
            yield " ", row["after"], 0
        else:
            if "before" in row:
                yield "-", row["before"], 0
            if "after" in row:
                new.append(row["after"])
    yield from (("+", line, 0) for line in new)
