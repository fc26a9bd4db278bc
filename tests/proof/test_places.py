from typing import Any

from proof.places import NOWHERE, SchemaPlaces, at, has, put
from proof.validators import SchemaValidator


def places_of(schema: dict[str, Any]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    places = list(SchemaPlaces(schema, SchemaValidator(schema).accepts))
    for place in places:
        for host in place.hosts:
            assert SchemaValidator(schema).accepts(host)
            assert has(host, place.path)
    return {place.pointer: place.hosts for place in places}


def test_each_place_is_reached_by_a_valid_value() -> None:
    hosts = places_of(
        {
            "type": "object",
            "required": ["a"],
            "dependentRequired": {"b": ["c"]},
            "properties": {
                "a": {"type": "array", "items": {"type": "integer"}, "prefixItems": [{}]},
                "b": {"type": "string"},
                "c": {"oneOf": [{"type": "string"}, {"type": "object", "minProperties": 1}]},
                "d": {"$ref": "#/$defs/d"},
            },
            "patternProperties": {"^x_[a-z]$": {"type": "null"}},
            "$defs": {"d": {"type": "object", "properties": {"d": {"$ref": "#/$defs/d"}}}},
        }
    )
    assert all(hosts.values())
    assert {
        (),
        ("properties", "a"),
        ("properties", "c"),
        ("properties", "a", "items"),
        ("properties", "a", "prefixItems", 0),
        ("properties", "b"),
        ("properties", "c", "oneOf", 0),
        ("properties", "c", "oneOf", 1),
        ("properties", "d"),
        ("$defs", "d"),
        ("$defs", "d", "properties", "d"),
        ("patternProperties", "^x_[a-z]$"),
    } == {*hosts}
    # The smallest first: nothing is in it that need not be.
    assert set(hosts["properties", "d"][0]) == {"a", "d"}
    assert {"b", "c"} <= set(hosts["properties", "b"][0])
    assert isinstance(hosts["properties", "c", "oneOf", 1][0]["c"], dict)


def test_a_place_that_no_valid_value_has_is_without_one() -> None:
    hosts = places_of({"type": "array", "maxItems": 0, "items": {"type": "string"}})
    assert hosts["items",] == ()


def test_values_are_changed_at_a_path() -> None:
    value = {"a": [{"b": 1}]}
    assert at(value, ("a", 0, "b")) == 1
    assert at(value, ("a", 1)) is NOWHERE
    assert put(value, ("a", 0, "b"), 2) == {"a": [{"b": 2}]}
    assert put(value, ("a", 1), 2) == {"a": [{"b": 1}, 2]}
    assert put(value, ("a", 2), 2) is NOWHERE
    assert put(value, ("c", "d"), 2) is NOWHERE
    assert put(value, (), 2) == 2
    assert value == {"a": [{"b": 1}]}
