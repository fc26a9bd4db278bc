from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from proof.plain_values import drawn_values
from proof.strategies import FORMATS, NoSuchValue, SchemaValues

TREE: dict[str, Any] = {
    "$ref": "#/$defs/Tree",
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {
                "left": {"$ref": "#/$defs/Tree"},
                "right": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
                "name": {"type": "string"},
            },
            "required": ["name", "right"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: list[dict[str, Any]] = [
    {},
    TREE,
    {"type": "integer", "minimum": 3, "exclusiveMaximum": 9, "multipleOf": 2},
    {"type": "number", "minimum": -1, "maximum": 1},
    {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 5},
    {"type": "integer", "maximum": -(2**60)},
    {"type": "string", "minLength": 3, "maxLength": 4},
    {"type": "string", "minLength": 300},
    {"type": "string", "pattern": "^[a-z]+$", "minLength": 12},
    {"type": "string", "pattern": r"^\p{L}{2,4}$"},
    {"type": "string", "pattern": "x"},
    {"type": ["string", "null"], "enum": ["a", None]},
    {"const": {"a": [1]}},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"const": 1}, {"type": "null"}], "items": False},
    {"type": "array", "contains": {"const": 7}, "minContains": 2, "items": {"type": "integer"}},
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "minProperties": 1},
    {"type": "object", "propertyNames": {"pattern": "^[a-z]{3}$"}, "minProperties": 1},
    {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "null"}}},
    {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer"}}}]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}, {"const": 3}]},
    {"not": {"type": "string"}},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "type": "object"},
    {"type": "object", "properties": {name: {"type": "integer"} for name in "abcdefghijklmnopq"}},
    *({"type": "string", "format": name} for name in FORMATS),
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_values_fit_their_schema(schema: dict[str, Any]) -> None:
    values = drawn_values(SchemaValues(schema).strategy(), 1, 30)
    # What another library takes: the maker's own has seen to it that all of them fit.
    other = Draft202012Validator(schema, format_checker=None)
    assert values
    if "\\p" not in str(schema):
        assert [value for value in values if not other.is_valid(value)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {}},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
    ],
)
def test_where_nothing_fits_it_is_said(schema: dict[str, Any]) -> None:
    with pytest.raises(NoSuchValue):
        SchemaValues(schema)


def test_a_value_that_never_ends_is_not_made() -> None:
    endless = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "required": ["a"],
               "properties": {"a": {"$ref": "#/$defs/A"}}}}}  # fmt: skip
    with pytest.raises(NoSuchValue):
        drawn_values(SchemaValues(endless).strategy(), 1, 3)


def test_recursive_values_have_many_shapes() -> None:
    values = drawn_values(SchemaValues(TREE).strategy(), 1, 60)
    assert {"left" in value for value in values} == {True, False}
    assert any(value["right"] is not None for value in values)


def test_values_are_made_small() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
              "required": ["a"]}  # fmt: skip
    small = hypothesis.find(SchemaValues(schema).strategy(), lambda value: value["a"] > 5)
    assert small == {"a": 6}


@given(st.data())
def test_texts_are_of_the_characters_asked_for(data: st.DataObject) -> None:
    letters = st.sampled_from("xyz")
    value = data.draw(SchemaValues({"type": "string"}).strategy(letters))
    assert set(value) <= {*"xyz"}


JSON_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
ANY_SCHEMA: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(JSON_TYPES),
            "minimum": st.integers(-5, 5),
            "maxLength": st.integers(0, 5),
            "minItems": st.integers(0, 3),
            "maxProperties": st.integers(0, 3),
            "enum": st.lists(st.integers(-3, 3) | st.none() | st.text(max_size=2), min_size=1,
                             unique=True),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "required": st.lists(st.sampled_from("abc"), unique=True),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "additionalProperties": inner | st.booleans(),
        },
    ),
    max_leaves=6,
)  # fmt: skip


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.filter_too_much])
@given(ANY_SCHEMA, st.data())
def test_of_any_schema_values_are_made_or_it_is_said(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    try:
        values = SchemaValues(schema)
    except NoSuchValue:
        return
    value = data.draw(values.strategy())
    assert Draft202012Validator(schema).is_valid(value)
