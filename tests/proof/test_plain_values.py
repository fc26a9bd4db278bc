from typing import Any

import pytest
from hypothesis import strategies as st

from proof.plain_values import PLAIN_FORMATS, drawn, drawn_values, made_value, plain_value
from proof.strategies import NoSuchValue
from proof.validators import SchemaValidator


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 6, "maxLength": 7}, "texttex"),
        ({"type": "string", "format": "date"}, "2026-01-15"),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMinimum": 2}, 3),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 3}, 3),
        ({"type": "string", "examples": ["Ana"], "default": "Ben"}, "Ben"),
        ({"type": "string", "examples": ["Ana"]}, "Ana"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "maxItems": 0}, []),
        ({"prefixItems": [{"const": "x"}], "type": "array"}, ["x"]),
        ({"properties": {"a": {"type": "null"}, "b": {"const": 1}}}, {"a": None, "b": 1}),
        (
            {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"const": 2}}}],
             "$defs": {"A": {"properties": {"a": {"const": 1}}, "required": ["a"]}}},
            {"a": 1, "b": 2},
        ),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ({"$ref": "#/$defs/S", "examples": ["mine"], "$defs": {"S": {"type": "string"}}}, "mine"),
    ],
)  # fmt: skip
def test_a_value_is_plausible(schema: dict[str, Any], value: Any) -> None:
    assert plain_value(schema, 0) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "examples": [1]},
        {"type": "integer", "not": {"const": 1}},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
        {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "maxProperties": 0},
        {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "required": ["t"],
         "properties": {"t": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}}}}},
    ],
)  # fmt: skip
def test_what_is_not_plainly_right_is_made_right(schema: dict[str, Any]) -> None:
    value = plain_value(schema, 4)
    assert SchemaValidator(schema).accepts(value)
    assert plain_value(schema, 4) == value


def test_formats_fit() -> None:
    for name, text in PLAIN_FORMATS.items():
        assert SchemaValidator({"format": name}).accepts(text)


def test_without_a_value_it_is_said() -> None:
    with pytest.raises(NoSuchValue):
        plain_value({"type": "string", "minLength": 2, "maxLength": 1}, 0)
    with pytest.raises(NoSuchValue):
        drawn_values(st.nothing(), 0, 3)


def test_the_seed_decides() -> None:
    schema = {"type": "integer", "minimum": 0}
    assert made_value(schema, 1) == made_value(schema, 1)
    assert len({made_value(schema, seed) for seed in range(9)}) > 3
    assert drawn(st.just(7), 0) == 7
    assert len(drawn_values(st.integers(), 5, 20)) == 20


def test_a_value_without_end_is_given_up() -> None:
    names = [f"m{number}" for number in range(60)]
    level = {"required": names, "properties": {name: {"$ref": "#/$defs/A"} for name in names}}
    schemas = {"A": {**level, "type": "object"}}
    many = {"type": "array", "items": {"type": "string"}, "minItems": 100}
    for _ in range(3):
        many = {"type": "array", "items": many, "minItems": 100}
    with pytest.raises(NoSuchValue):
        plain_value(many, 0)
    with pytest.raises(NoSuchValue):
        plain_value({"$ref": "#/$defs/A", "$defs": schemas}, 0)
