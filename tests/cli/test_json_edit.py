"""A change to a JSON file leaves the rest of its text as it is, and can be taken back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.json_edit import loads, with_item, with_value, without

NAMES = st.text(max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)
INDENTS: Any = st.sampled_from([None, 1, 2, 4, "\t"])

COMMENTED = """{
    // which model
    "model": "x", /* the
                     cheap one */
    "hooks": {
        "Stop": [
            {"command": "a"}, // mine
        ]
    } // the end
}
"""


@given(OBJECTS, NAMES, VALUES, INDENTS)
def test_what_is_added_is_all_that_changes(
    given_object: dict[str, Any], name: str, value: Any, indent: Any
) -> None:
    text = json.dumps(given_object, ensure_ascii=False, indent=indent)
    changed = with_value(text, [name], value)
    assert json.loads(changed) == given_object | {name: value}
    if name not in given_object:
        assert without(changed, [name]) == text


@given(st.lists(VALUES, min_size=1, max_size=4), VALUES, INDENTS)
def test_an_item_is_added_at_the_end_and_taken_away(
    items: list[Any], value: Any, indent: Any
) -> None:
    text = json.dumps({"a": {"b": items}}, indent=indent)
    changed = with_item(text, ["a", "b"], value)
    assert json.loads(changed)["a"]["b"] == [*items, value]
    assert without(changed, ["a", "b", len(items)]) == text


@given(OBJECTS, INDENTS, st.data())
def test_any_member_can_be_taken_away(
    given_object: dict[str, Any], indent: Any, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(given_object)))
    text = json.dumps(given_object, indent=indent)
    left = {other: value for other, value in given_object.items() if other != name}
    assert json.loads(without(text, [name])) == left


def test_comments_and_the_users_own_indentation_stay() -> None:
    changed = with_item(COMMENTED, ["hooks", "Stop"], {"command": "b"})
    assert changed == COMMENTED.replace(
        "// mine\n", '// mine\n            {\n                "command": "b"\n            },\n'
    )
    assert without(changed, ["hooks", "Stop", 1]) == COMMENTED
    more = with_value(COMMENTED, ["env", "KEY"], "k")
    assert more == COMMENTED.replace(
        "} // the end", '}, // the end\n    "env": {\n        "KEY": "k"\n    }'
    )
    assert without(more, ["env"]) == COMMENTED


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{}\n", "{ }"])
def test_an_empty_file_is_an_empty_object(text: str) -> None:
    assert loads(text) == {}
    changed = with_value(text, ["a", "b"], [1])
    assert json.loads(changed) == {"a": {"b": [1]}}
    assert without(changed, ["a"]).strip() == "{}"


def test_a_value_is_replaced_in_its_place() -> None:
    assert with_value('{"a": 1, "b": 2}', ["a"], [3]) == '{"a": [3], "b": 2}'
    assert with_value('{\n "a": 1\n}', ["a"], [3]) == '{\n "a": [\n  3\n ]\n}'
    assert without('{"a": 1}', ["b", "c"]) == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: should have a name"),
        ('{"a": 1\n "b": 2}', "line 2: should have a comma or }"),
        ('{"a" 1}', "a colon"),
        ('{"a": oops}', "a value"),
        ('{"a": }', "a value"),
        ("{} {}", "the end of the file"),
        ("[" * 200, "less depth"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loads(text)


def test_a_path_through_something_else_is_refused() -> None:
    paths: list[list[str | int]] = [["a", "b"], ["a", 0]]
    for path in paths:
        with pytest.raises(ValueError, match="should be"):
            with_value('{"a": "text"}', path, 1)
    with pytest.raises(ValueError, match="a: should be a list"):
        with_item('{"a": {}}', ["a"], 1)
