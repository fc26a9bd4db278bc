from typing import Any

import pytest

from proof.places import SchemaPlaces, Steps
from proof.wrong_values import COUNT_MAX, LENGTH_MAX, is_broken_by_each, wrong_values


def wrong(schema: dict[str, Any], pointer: Steps, value: Any) -> list[Any]:
    places = SchemaPlaces(schema, lambda _: True)
    return list(wrong_values(places, schema, pointer, value))


@pytest.mark.parametrize(
    ("schema", "pointer", "value", "first"),
    [
        ({"type": "integer"}, ("type",), 7, "7"),
        ({"type": "boolean"}, ("type",), True, "true"),
        ({"enum": ["s", "m"]}, ("enum",), "s", "sx"),
        ({"minimum": 3}, ("minimum",), 5, 2),
        ({"exclusiveMaximum": 3}, ("exclusiveMaximum",), 1, 3),
        ({"maximum": 10, "multipleOf": 5}, ("maximum",), 5, 15),
        ({"minLength": 3}, ("minLength",), "text", "te"),
        ({"maxLength": 5}, ("maxLength",), "text", "texttt"),
        ({"minItems": 2}, ("minItems",), [1, 2, 3], [1]),
        ({"maxItems": 2}, ("maxItems",), [1], [1, 1, 1]),
        ({"uniqueItems": True}, ("uniqueItems",), [1, 2], [1, 2, 1]),
        ({"required": ["a", "b"]}, ("required", 1), {"a": 1, "b": 2}, {"a": 1}),
        ({"minProperties": 2}, ("minProperties",), {"a": 1, "b": 2}, {"a": 1}),
        ({"additionalProperties": False}, ("additionalProperties",), {}, {"not_agreed": 1}),
        ({"dependentRequired": {"a": ["b"]}}, ("dependentRequired", "a", 0), {}, {"a": "text"}),
        ({"properties": {"a": False}}, ("properties", "a"), {}, {"a": 1}),
    ],
)
def test_the_likeliest_comes_first(
    schema: dict[str, Any], pointer: Steps, value: Any, first: Any
) -> None:
    assert wrong(schema, pointer, value)[0] == first


def test_bounds_that_are_far_away_are_left() -> None:
    assert wrong({"maxLength": LENGTH_MAX}, ("maxLength",), "a") == []
    assert wrong({"maxItems": COUNT_MAX + 1}, ("maxItems",), []) == []
    assert wrong({"maxProperties": COUNT_MAX + 1}, ("maxProperties",), {}) == []


def test_only_of_types_each_counts() -> None:
    assert is_broken_by_each("type")
    assert not is_broken_by_each("enum")
