"""What it takes to hold a value against a schema, before anybody tries."""

from collections.abc import Iterator, Mapping
from typing import Any

EFFORT_MAX = 100_000
"""Schemas that one value may be held against: some milliseconds."""
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")


def effort(schema: Mapping[str, Any]) -> int:
    """How many schemas a value itself is held against at most, by a schema that stands alone: each
    as often as it is referred to. A few lines of references can make it astronomic. The work is
    linear in the schema.

    A schema that refers to itself without end is one more. Members and items are other values.
    """
    definitions = schema.get("$defs", {})
    known: dict[int, int] = {}
    values: list[Any] = [schema]
    while values:
        waiting = [(values.pop(), False)]
        while waiting:
            place, is_ready = waiting.pop()
            if not isinstance(place, Mapping):
                continue
            if is_ready:
                inner = _in_place(place, definitions)
                known[id(place)] = 1 + sum(known.get(id(part), 1) for part in inner)
            elif id(place) not in known:
                known[id(place)] = 1
                waiting.append((place, True))
                waiting += [(part, False) for part in _in_place(place, definitions)]
                values += _below(place)
    return max(known.values(), default=1)


def _in_place(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that hold the same value."""
    if isinstance(ref := schema.get("$ref"), str):
        yield definitions.get(ref.removeprefix("#/$defs/"), {})
    for keyword in _LISTS:
        if isinstance(parts := schema.get(keyword), list):
            yield from parts
    for keyword in _SINGLE:
        if keyword in schema:
            yield schema[keyword]
    if isinstance(named := schema.get("dependentSchemas"), Mapping):
        yield from named.values()


def _below(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas of members, items and names."""
    for keyword in ("properties", "patternProperties", "$defs"):
        if isinstance(named := schema.get(keyword), Mapping):
            yield from named.values()
    if isinstance(items := schema.get("prefixItems"), list):
        yield from items
    for keyword in (
        "additionalProperties", "contains", "items", "propertyNames", "unevaluatedItems",
        "unevaluatedProperties", "contentSchema",
    ):  # fmt: skip
        if keyword in schema:
            yield schema[keyword]
