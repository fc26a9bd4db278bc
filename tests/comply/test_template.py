"""Interpolation of test files (acpcomply, Test Model and Built-in Variables)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comply.matching import matches
from comply.template import UnknownVariable, fill, fill_pattern, names, to_json

NAMES = st.sampled_from(["sessionId", "sandbox", "a", "b_2"])
PLAIN = st.text(st.characters(exclude_characters="$\ue000", exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=6,
)


def test_a_bare_variable_is_json_and_one_in_a_string_is_text() -> None:
    text = '{"v": ${version}, "caps": ${caps}, "cwd": "${sandbox}/src"}'
    variables: dict[str, Any] = {"version": 1, "caps": {"terminal": True}, "sandbox": "/s"}
    assert fill(json.loads(to_json(text)), variables) == {
        "v": 1,
        "caps": {"terminal": True},
        "cwd": "/s/src",
    }


@given(st.dictionaries(NAMES, JSON, min_size=1), st.data())
def test_a_bare_variable_is_what_pasting_its_json_gives(
    variables: dict[str, Any], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(variables)))
    text = f'{{"x": [${{{name}}}, 1], "y": ${{{name}}}}}'
    pasted = text.replace(f"${{{name}}}", json.dumps(variables[name]))
    assert fill(json.loads(to_json(text)), variables) == json.loads(pasted)


@given(JSON)
def test_text_without_variables_stays_as_it_is(value: Any) -> None:
    text = json.dumps(value)
    assert to_json(text) == text
    assert fill(value, {}) == value
    assert list(names(value)) == []


@given(PLAIN, PLAIN)
def test_in_an_expectation_a_variable_stands_for_itself(prefix: str, value: str) -> None:
    pattern = fill_pattern("^${a}$", {"a": value})
    assert matches(pattern, value)
    assert prefix == value or value == "" or not matches(pattern, f"{value}{value}x")


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(UnknownVariable, match=r"\$\{nope\} is not set; there are a, b"):
        fill(["${nope}"], {"a": 1, "b": 2})


def test_lines_stay_lines() -> None:
    text = '{\n"v":\n${version}\n}'
    assert to_json(text).count("\n") == text.count("\n")
