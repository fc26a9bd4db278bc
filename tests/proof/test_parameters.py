from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.model import Located, Parameter
from proof.parameters import EVERY, TypesOf, Unwritable, path_text, readings, written

SCALARS = frozenset({"boolean", "integer", "number", "string"})


def parameter(place: Any, style: str | None = None) -> Parameter:
    return Parameter("p", place, True, Located(True, ()), (), style)


@pytest.mark.parametrize(
    ("place", "style", "value", "pairs"),
    [
        ("query", None, 7, [("p", "7")]),
        ("query", None, True, [("p", "true")]),
        ("query", None, "a b", [("p", "a b")]),
        ("query", None, [1, 2], [("p", "1"), ("p", "2")]),
        ("query", None, {"a": 1, "b": "x"}, [("a", "1"), ("b", "x")]),
        ("query", "form", [1, 2], [("p", "1,2")]),
        ("query", "form", {"a": 1}, [("p", "a,1")]),
        ("query", "spaceDelimited", ["x", "y"], [("p", "x y")]),
        ("query", "pipeDelimited", ["x", "y"], [("p", "x|y")]),
        ("query", "deepObject+explode", {"a": 1}, [("p[a]", "1")]),
        ("query", "content application/json", {"a": [None]}, [("p", '{"a": [null]}')]),
        ("header", None, [1, 2], [("p", "1,2")]),
        ("header", "simple+explode", {"a": 1, "b": 2}, [("p", "a=1,b=2")]),
        ("path", None, 1.5, [("p", "1.5")]),
    ],
)
def test_values_are_written_and_read(
    place: Any, style: str | None, value: Any, pairs: list[tuple[str, str]]
) -> None:
    one = parameter(place, style)
    assert written(one, value) == pairs
    kinds = EVERY if style is None else frozenset({"object", "array"})
    assert value in list(readings(one, pairs, kinds))


@pytest.mark.parametrize(
    ("place", "style", "value"),
    [
        ("query", None, None),
        ("query", None, [[1]]),
        ("query", "form", ["a,b"]),
        ("query", "form", []),
        ("header", None, {"a": "x,y"}),
        ("header", None, {}),
    ],
)
def test_what_a_parameter_cannot_carry_is_not_written(
    place: Any, style: str | None, value: Any
) -> None:
    with pytest.raises(Unwritable):
        written(parameter(place, style), value)


@pytest.mark.parametrize("value", ["", ".", "..", None])
def test_a_part_of_a_path_stays_one(value: Any) -> None:
    with pytest.raises(Unwritable):
        path_text(parameter("path"), value)
    assert path_text(parameter("path"), "é ?#%/") == "%C3%A9%20%3F%23%25%2F"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("7", [7, "7", "7"]),
        ("true", [True, "true", "true"]),
        ("007", ["007", "007"]),
        ("1e3", [1000.0, "1e3", "1e3"]),
        ("NaN", ["NaN", "NaN"]),
        ("٣", ["٣", "٣"]),
        ("", ["", ""]),
    ],
)
def test_a_text_may_be_a_number_or_a_text(text: str, values: list[Any]) -> None:
    assert list(readings(parameter("query"), [("p", text)], SCALARS)) == values


def test_what_is_not_there_has_no_readings() -> None:
    kinds = SCALARS | {"array", "object"}
    assert list(readings(parameter("header"), [("q", "1")], kinds)) == []


@given(
    st.sampled_from(["query", "header", "path", "cookie"]),
    st.integers() | st.booleans() | st.text() | st.lists(st.integers(), min_size=1),
)
def test_what_is_written_is_read_again(place: Any, value: Any) -> None:
    one = parameter(place)
    assert value in list(readings(one, written(one, value), SCALARS | {"array"}))


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["array", "null"]}, {"array", "null"}),
        ({"$ref": "#/$defs/A"}, {"integer"}),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/A"}]}, {"string", "integer"}),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, {"string"}),
    ],
)
def test_the_types_of_a_schema(schema: Any, kinds: set[str]) -> None:
    assert TypesOf(schema | {"$defs": {"A": {"type": "integer"}}}).whole == kinds


def test_a_schema_of_any_type_and_one_in_a_circle_have_all() -> None:
    assert TypesOf({}).whole == EVERY
    circle = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}] * 3}}}
    assert TypesOf(circle).whole == EVERY
    assert TypesOf(circle).members == {}


def test_members_have_types_too() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/A"}],
        "properties": {"b": {"type": "string"}},
        "$defs": {"A": {"properties": {"a": {"type": "integer"}, "b": {}}}},
    }
    assert TypesOf(schema).members == {"a": {"integer"}, "b": {"string"}}
