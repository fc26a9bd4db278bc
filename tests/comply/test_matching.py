"""Regex subset matching (acpcomply, Expectations)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comply.matching import assign, differences, look_up, matches
from comply.template import literal

KEYS = st.text("abc", min_size=1, max_size=2)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(KEYS, JSON, min_size=1, max_size=4)


@given(JSON)
def test_a_value_meets_its_own_literal(value: Any) -> None:
    assert matches(literal(value), value)


@given(OBJECT, JSON)
def test_fields_that_are_not_named_are_ignored(value: dict[str, Any], more: Any) -> None:
    assert matches(literal(value), value | {"zzz": more})


@given(OBJECT, st.data())
def test_a_missing_field_is_found_and_named(value: dict[str, Any], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(value)))
    found = list(differences(literal(value), {k: v for k, v in value.items() if k != gone}))
    assert [one.path for one in found] == [gone]


@given(st.lists(JSON, max_size=5), st.randoms())
def test_the_order_of_a_list_does_not_matter(items: list[Any], random: Any) -> None:
    shuffled = [*items, "extra"]
    random.shuffle(shuffled)
    assert matches(literal(items), shuffled)


@pytest.mark.parametrize(
    ("expected", "actual", "met"),
    [
        ("^0$", 0, True),
        ("^(true|false)$", True, True),
        ("^null$", None, True),
        ("^-32601$", -32601, True),
        ("app", "frontend-app", True),
        ("^app", "frontend-app", False),
        ('"a":1', {"a": 1}, True),
        (1, True, False),
        (1, "1", True),
        ("^1$", 1, True),
        (200.0, 200, True),
        (1, 21, False),
        ([], {}, False),
        (["^a$", "^a$"], ["a"], True),
        ({"$absent": ["x"]}, {"y": 1}, True),
        ({"$absent": ["x"], "y": 1}, {"x": None, "y": 1}, False),
        ({"$every": {"t": "^q$"}}, [{"t": "q"}, {"t": "q", "u": 1}], True),
        ({"$every": {"t": "^q$"}}, [{"t": "q"}, {"t": "r"}], False),
        ({"$count": "^2$"}, ["a", "b"], True),
        ({"$count": "^2$"}, ["a"], False),
        ({"$count": "^2$"}, "ab", False),
    ],
)
def test_what_meets_what(expected: Any, actual: Any, met: bool) -> None:
    assert matches(expected, actual) is met


def test_a_mismatch_says_where_and_what() -> None:
    found = list(differences({"error": {"code": "^-32601$"}}, {"error": {"code": -32000}}))
    assert [str(one) for one in found] == ["error.code: expected ^-32601$, got -32000"]


@given(st.lists(st.sets(st.integers(0, 4)), max_size=5), st.integers(0, 5))
def test_as_many_expectations_are_met_as_can_be(wishes: list[set[int]], count: int) -> None:
    """Against every possible choice: an item meets one expectation at most."""
    items = list(range(count))
    choices: list[Any] = [sorted(wish) for wish in wishes]
    found = assign(choices, items, lambda wish, item: item in _list(wish))
    assert len(set(found.values())) == len(found)
    assert all(item in wishes[wanted] for wanted, item in found.items())
    assert len(found) == _best([wish & set(items) for wish in wishes], frozenset())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _best(wishes: list[set[int]], taken: frozenset[int]) -> int:
    if not wishes:
        return 0
    first, *rest = wishes
    return max([_best(rest, taken), *(1 + _best(rest, taken | {item}) for item in first - taken)])


def test_paths_lead_into_lists_by_number() -> None:
    value: Any = {"result": {"repos": [{"id": 1}, {"id": 2}]}}
    assert look_up(value, "result.repos.1.id") == 2
    for path in ("result.repos.2.id", "result.x", "result.repos.-1"):
        with pytest.raises(KeyError):
            look_up(value, path)
