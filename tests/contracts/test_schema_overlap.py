"""Alternatives that exclude each other."""

from typing import Any

import pytest

from contracts.model import Located
from contracts.recognise import read
from contracts.schema_overlap import apart
from contracts.schema_reader import SchemaReader
from contracts.work import Work

KIND = {"type": "object", "required": ["k"]}


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ({"type": "string"}, {"type": "null"}, True),
        ({"const": "a"}, {"enum": ["b", "c"]}, True),
        ({"const": "a"}, {"enum": ["a"]}, False),
        ({"type": "number", "maximum": 1}, {"type": "number", "exclusiveMinimum": 1}, True),
        ({"type": "number", "maximum": 1}, {"type": "number", "minimum": 1}, False),
        (
            {**KIND, "properties": {"k": {"const": 1}}},
            {**KIND, "properties": {"k": {"const": 2}}},
            True,
        ),
        (
            {**KIND, "properties": {"k": {"type": "string"}}},
            {**KIND, "properties": {"k": {"type": "integer"}}},
            True,
        ),
        (
            {**KIND, "properties": {"k": {"type": "number"}}},
            {**KIND, "properties": {"k": {"type": "integer"}}},
            False,
        ),
        (KIND, {"type": "object", "additionalProperties": False}, True),
        (KIND, {"type": "object"}, False),
    ],
)
def test_what_is_certainly_apart(one: Any, two: Any, expected: bool) -> None:
    reader = SchemaReader(read({"type": "object"}, "json-schema"), "response", Work(1_000))
    first, second = (reader.atoms(reader.view(Located(schema, ()))) for schema in (one, two))
    each = [(a, b) for a in first for b in second]
    assert all(apart(a, b, reader.member, Work(1_000)) for a, b in each) is expected
