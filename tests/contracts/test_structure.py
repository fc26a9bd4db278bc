"""Differences by place alone, and of words."""

from typing import Any

import pytest

from contracts.changes import ChangeLog
from contracts.structure import structure_changes, word_changes
from contracts.work import TooMuchWork, Work


def words(before: Any, after: Any) -> list[tuple[str, str]]:
    log = ChangeLog()
    word_changes(log, Work(1_000), before, after)
    return [(change.path, change.rule) for change in log.comparison().changes]


def test_a_word_is_told_from_a_member_of_its_name() -> None:
    before: Any = {"properties": {"title": {"type": "string", "title": "A"}}}
    after: Any = {"properties": {"title": {"type": "number", "title": "B"}}}
    assert words(before, after) == [("$.properties.title.title", "annotation_changed")]


def test_extensions_are_words_and_mappings_are_not() -> None:
    assert words({"x-a": 1}, {"x-a": 2}) == [('$["x-a"]', "annotation_changed")]
    before = {"discriminator": {"mapping": {"a": "#/A", "b": "#/B"}}}
    after = {"discriminator": {"mapping": {"a": "#/C", "c": "#/D"}}}
    assert words(before, after) == [("$.discriminator.mapping.a", "discriminator_changed")]


def test_lists_are_compared_place_by_place_within_the_bound() -> None:
    log = ChangeLog()
    structure_changes(log, Work(100), [1, {"a": True}], [2, {"a": 1}, 3], ("x",))
    changes = {change.path: change.rule for change in log.comparison().changes}
    assert changes == {
        "$.x[0]": "value_changed",
        "$.x[1].a": "value_changed",
        "$.x[2]": "value_added",
    }
    with pytest.raises(TooMuchWork):
        structure_changes(log, Work(3), list(range(9)), list(range(1, 10)), ())
