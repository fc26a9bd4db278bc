"""Valid values at the edges of a schema: the least and the most that it takes, each of its choices,
each member there and absent."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from proof.places import NOWHERE, SchemaPlaces, at, put
from proof.validators import SchemaValidator
from proof.violations import Readings

LENGTH_MAX = 100_000
ITEMS_MAX = 200
EDGE_FORMATS: Mapping[str, tuple[str, ...]] = {
    "date-time": ("2026-01-15T10:30:00+02:00", "2026-01-15T10:30:00.123456Z"),
    "time": ("10:30:00+02:00", "10:30:00.123456Z"),
    "date": ("2024-02-29",),
    "uuid": ("0198C0DF-0000-4000-8000-00000000000A",),
}


def edge_values(schema: Mapping[str, Any], readings: Readings) -> list[Any]:
    """Valid values of a schema that stands alone, the simplest first, each with one edge in it."""
    validator = SchemaValidator(schema)

    def accepts(value: Any) -> bool:
        return any(map(validator.accepts, readings(value)))

    places = SchemaPlaces(validator.schema, accepts)
    by_text: dict[str, Any] = {}
    fullest: Any = {}
    for place in places:
        for host in place.hosts:
            by_text.setdefault(json.dumps(host), host)
            if isinstance(host, dict) and accepts({**host, **fullest}):
                fullest = {**host, **fullest}
        for edge in _edges(places, place.schema):
            for host in place.hosts:
                value = put(host, place.path, edge)
                if value is not NOWHERE and json.dumps(at(host, place.path)) == json.dumps(edge):
                    break
                if value is not NOWHERE and accepts(value):
                    by_text.setdefault(json.dumps(value), value)
                    break
    if fullest:
        by_text.setdefault(json.dumps(fullest), fullest)
    return list(by_text.values())


def _edges(places: SchemaPlaces, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Values at the edges of one schema, which need not fit."""
    if isinstance(choices := schema.get("enum"), list):
        yield from choices
        return
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if len(kinds) > 1:
        yield from (_OF_TYPE[kind] for kind in kinds if kind in _OF_TYPE)
    if "boolean" in kinds:
        yield from (True, False)
    yield from _numbers(schema)
    for word in ("minLength", "maxLength"):
        length = schema.get(word, LENGTH_MAX)
        if length < LENGTH_MAX:
            exact = {**schema, "minLength": length, "maxLength": length}
            yield "a" * length if "pattern" not in schema else next(places.values(exact), None)
            if "pattern" in schema:
                yield from places.made(exact)
    yield from EDGE_FORMATS.get(str(schema.get("format")), ())
    for word in ("minItems", "maxItems"):
        count = schema.get(word, ITEMS_MAX)
        if count < ITEMS_MAX:
            exact = {**schema, "minItems": count, "maxItems": count}
            yield from places.made(exact) if schema.get("uniqueItems") else places.values(exact)
    if "array" in kinds:
        yield []
    if "object" in kinds:
        yield {}


def _numbers(schema: Mapping[str, Any]) -> Iterator[Any]:
    step = schema.get("multipleOf", 1)
    for word, sign in (("minimum", 1), ("maximum", -1)):
        if word in schema:
            yield from (schema[word], schema[word] + sign * step)
    for word, sign in (("exclusiveMinimum", 1), ("exclusiveMaximum", -1)):
        if word in schema:
            whole = schema[word] + sign * step
            yield from (whole, schema[word] + sign * 0.5, schema[word] // step * step)


_OF_TYPE: Mapping[str, Any] = {
    "null": None, "boolean": True, "integer": 1, "number": 1.5, "string": "text", "array": [],
    "object": {},
}  # fmt: skip
