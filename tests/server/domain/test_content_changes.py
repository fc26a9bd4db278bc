"""Changes with their effect on either side, within bounds."""

import doctest
from typing import Any

import pytest

from server.domain import content_changes
from server.domain.content_changes import (
    ALIKE,
    CHANGES_MAX,
    NARROWER,
    OTHER,
    PATH_MAX,
    TEXT_MAX,
    UNCLEAR,
    WIDER,
    ChangeLog,
    Direction,
    Variance,
    path_text,
    same,
)


def test_the_examples() -> None:
    assert doctest.testmod(content_changes).failed == 0


@pytest.mark.parametrize(
    ("direction", "variance", "provider", "consumer"),
    [
        ("response", NARROWER, "breaking", "compatible"),
        ("response", WIDER, "compatible", "breaking"),
        ("request", NARROWER, "compatible", "breaking"),
        ("request", WIDER, "breaking", "compatible"),
        (None, NARROWER, "unknown", "unknown"),
        (None, WIDER, "unknown", "unknown"),
        (None, OTHER, "breaking", "breaking"),
        (None, ALIKE, "compatible", "compatible"),
        ("request", OTHER, "breaking", "breaking"),
        ("response", UNCLEAR, "unknown", "unknown"),
        ("response", Variance(None, True), "compatible", "unknown"),
    ],
)
def test_whom_a_change_breaks_follows_from_who_sends(
    direction: Direction, variance: Variance, provider: str, consumer: str
) -> None:
    log = ChangeLog()
    log.add(("a",), "rule", 1, 2, variance, direction)
    [change] = log.changes
    assert (change.provider, change.consumer) == (provider, consumer)
    assert change.why


def test_what_differs_in_structure_is_unknown() -> None:
    log = ChangeLog()
    log.structure(
        {"same": [1], "gone": None, "list": [1, 2], "deep": {"x": 1}},
        {"same": [1], "list": [1, 3, {}], "deep": {"x": True}, "new": "ü"},
        (),
    )
    assert [(c.path, c.rule, c.before, c.after) for c in log.changes] == [
        ("$.gone", "value_removed", "null", None),
        ("$.list[1]", "value_changed", "2", "3"),
        ("$.list[2]", "value_added", None, "{}"),
        ("$.deep.x", "value_changed", "1", "true"),
        ("$.new", "value_added", None, '"ü"'),
    ]
    assert {(c.provider, c.consumer) for c in log.changes} == {("unknown", "unknown")}


def test_one_and_true_are_not_the_same() -> None:
    assert same({"a": [1]}, {"a": [1]})
    assert not same({"a": [1]}, {"a": [True]})
    assert not same(1, True)
    assert same(1, 1.0)


def test_it_is_bounded() -> None:
    log = ChangeLog()
    log.structure({}, {str(n): "x" * 1_000 for n in range(CHANGES_MAX + 7)}, ())
    assert (len(log.changes), log.more) == (CHANGES_MAX, 7)
    assert all(len(change.after or "") == TEXT_MAX for change in log.changes)


def test_too_large_contents_are_named_so() -> None:
    log = ChangeLog()
    log.structure([[n] for n in range(30_000)], [[n + 1] for n in range(30_000)], ())
    assert log.more > 1_000
    deep: Any = []
    other: Any = [1]
    for _ in range(5_000):
        deep, other = [deep], [other]
    log = ChangeLog()
    log.structure(deep, other, ())
    assert [change.rule for change in log.changes] == ["too_large"]


def test_a_path_is_cut() -> None:
    assert len(path_text(("a" * 1_000_000,))) == PATH_MAX
    assert len(path_text(("é" * 1_000_000,) * 3)) == PATH_MAX
