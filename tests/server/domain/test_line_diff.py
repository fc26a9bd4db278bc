"""Two contents beside each other, line by line."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemas.plain import escaped
from server.domain.line_diff import (
    LINES_MAX,
    ROWS_MAX,
    WIDTH_MAX,
    DiffLine,
    json_lines,
    line_diff,
    unified,
)
from tests.support.contents import CONTENTS

SMALL = st.lists(st.integers(0, 4), max_size=40)


def text(line: DiffLine | None) -> str:
    """A line with its changed words in brackets."""
    if line is None:
        return ""
    return "".join(f"[{part.text}]" if part.changed else part.text for part in line.parts)


def test_words_that_differ_are_marked() -> None:
    before = {"a": 1, "b": "one two", "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}
    diff = line_diff(before, before | {"b": "one three", "h": 8})
    assert [(row.kind, text(row.before), text(row.after)) for row in diff.rows] == [
        ("equal", "{", "{"),
        ("equal", '  "a": 1,', '  "a": 1,'),
        ("changed", '  "b": "one [two]",', '  "b": "one [three]",'),
        ("equal", '  "c": 3,', '  "c": 3,'),
        ("equal", '  "d": 4,', '  "d": 4,'),
        ("equal", '  "e": 5,', '  "e": 5,'),
        ("equal", '  "f": 6,', '  "f": 6,'),
        ("changed", '  "g": 7', '  "g": 7[,]'),
        ("added", "", '  "h": 8'),
        ("equal", "}", "}"),
    ]
    assert diff.more == 0


def test_what_is_far_from_a_difference_is_a_gap() -> None:
    before = {f"n{n}": n for n in range(100)}
    diff = line_diff(before, before | {"n50": "x"})
    assert [(row.kind, row.skipped) for row in diff.rows if row.kind != "equal"] == [
        ("gap", 48),
        ("changed", 0),
        ("gap", 47),
    ]
    [changed] = [row for row in diff.rows if row.kind == "changed"]
    assert changed.before is not None
    assert changed.before.number == 52


def test_no_character_hides_or_rearranges_others() -> None:
    diff = line_diff({}, {"a": "\u202ec\ud800"})
    assert text(diff.rows[1].after) == '  "a": "\\u202ec\\ud800"'
    diff = line_diff({"a": "b"}, {"a": "\u200bb"})
    assert text(diff.rows[1].after) == '  "a": "[\\u200bb]"'


def test_it_is_bounded() -> None:
    line = "x" * 1_000_000
    diff = line_diff({"a": line}, {"a": line + "y"})
    [changed] = [row for row in diff.rows if row.kind == "changed"]
    assert changed.after is not None
    assert len(text(changed.after)) <= WIDTH_MAX + 2
    assert changed.after.cut == len(line) + 1 + len('  "a": ""') - WIDTH_MAX
    many = {str(n): n for n in range(5 * LINES_MAX)}
    diff = line_diff(many, {name: value + 1 for name, value in many.items()})
    assert len(diff.rows) == ROWS_MAX
    assert diff.more > 2 * (4 * LINES_MAX)
    assert line_diff([1] * 9_000, [2] * 9_000).more
    assert line_diff({"a": 10**400}, {"a": "\ud800"}).rows


@given(CONTENTS, CONTENTS)
def test_both_contents_stand_in_their_rows(before: dict[str, Any], after: dict[str, Any]) -> None:
    diff = line_diff(before, after)
    assert (diff.rows == []) == (json_lines(before) == json_lines(after))
    _check_rows(json_lines(before), json_lines(after), diff.rows)


@given(SMALL, SMALL)
def test_rows_of_long_contents_are_right(before: list[int], after: list[int]) -> None:
    _check_rows(json_lines(before), json_lines(after), line_diff(before, after).rows)


def _check_rows(was: list[str], now: list[str], rows: Any) -> None:
    """Every line stands in the rows once, in order, or in a gap."""
    at = [0, 0]
    for row in rows:
        for side, (lines, line) in enumerate(((was, row.before), (now, row.after))):
            if row.kind == "gap":
                at[side] += row.skipped
            elif line is not None:
                assert line.number == at[side] + 1
                assert (
                    "".join(part.text for part in line.parts)
                    == escaped(lines[at[side]])[:WIDTH_MAX]
                )
                at[side] += 1
        if row.kind == "equal":
            assert was[at[0] - 1] == now[at[1] - 1]
    if rows:
        assert at == [len(was), len(now)]


def test_one_below_the_other_old_lines_come_first() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "equal", "before": {"number": 1}, "after": {"number": 1}, "skipped": 0},
        {"kind": "changed", "before": {"number": 2}, "after": {"number": 2}, "skipped": 0},
        {"kind": "changed", "before": {"number": 3}, "after": {"number": 3}, "skipped": 0},
        {"kind": "added", "after": {"number": 4}, "skipped": 0},
        {"kind": "gap", "skipped": 7},
        {"kind": "removed", "before": {"number": 11}, "skipped": 0},
    ]
    lines = [(mark, line and line["number"], skipped) for mark, line, skipped in unified(rows)]
    assert lines == [
        (" ", 1, 0),
        ("-", 2, 0),
        ("-", 3, 0),
        ("+", 2, 0),
        ("+", 3, 0),
        ("+", 4, 0),
        ("…", None, 7),
        ("-", 11, 0),
    ]
