"""Descriptions of a value compared, as JSON Schema and as shorthand."""

from typing import Any

import pytest

from server.domain.content_changes import ChangeLog, Direction
from server.domain.schema_diff import compare_schemas, is_schema

Effects = list[tuple[str, str, str]]
SHORT = {"compatible": "ok", "breaking": "breaks", "unknown": "?"}


def effects(before: Any, after: Any, direction: Direction) -> Effects:
    """The rule, and the effect on the provider and the consumer, of each change."""
    log = ChangeLog()
    compare_schemas(log, before, after, (), direction)
    return [(c.rule, SHORT[c.provider], SHORT[c.consumer]) for c in log.changes]


def an_object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


A = {"type": "string"}


@pytest.mark.parametrize(
    ("before", "after", "request_", "response"),
    [
        # before, after, (rule, provider, consumer) in a request, and in a response
        ({"a": "string"}, {"a": "string", "b": "string?"},
         [("member_added", "ok", "ok")], [("member_added", "ok", "ok")]),
        ({"a": "string"}, {"a": "string", "b": "string"},
         [("required_member_added", "ok", "breaks")], [("required_member_added", "breaks", "ok")]),
        ({"a": "string", "b": ["string"]}, {"a": "string"},
         [("required_member_removed", "breaks", "?")],
         [("required_member_removed", "ok", "breaks")]),
        ({"b": "string?"}, {},
         [("member_removed", "ok", "?")], [("member_removed", "ok", "?")]),
        ({"b": "string?"}, {"b": "string"},
         [("became_required", "ok", "breaks")], [("became_required", "breaks", "ok")]),
        ({"b": "string"}, {"b": "string?"},
         [("became_optional", "breaks", "ok")], [("became_optional", "ok", "breaks")]),
        ({"b": "string"}, {"b": "integer"},
         [("type_changed", "breaks", "breaks")], [("type_changed", "breaks", "breaks")]),
        ({"b": "integer"}, {"b": "number"},
         [("type_changed", "breaks", "ok")], [("type_changed", "ok", "breaks")]),
        ({"b": "string"}, {"b": "string|null"},
         [("type_changed", "breaks", "ok")], [("type_changed", "ok", "breaks")]),
        ({"b": "string"}, {"b": {"c": "string"}},
         [("type_changed", "breaks", "breaks")], [("type_changed", "breaks", "breaks")]),
        ({"b": ["string"]}, {"b": ["integer"]},
         [("type_changed", "breaks", "breaks")], [("type_changed", "breaks", "breaks")]),
        # What is no shorthand is not judged.
        ({"b": "a uuid"}, {"b": "a text"},
         [("value_changed", "?", "?")], [("value_changed", "?", "?")]),
        ({}, {"b": "a uuid"}, [("member_added", "?", "?")], [("member_added", "?", "?")]),
        ({}, {"b": {"id": 5}}, [("member_added", "?", "?")], [("member_added", "?", "?")]),
        ({"b": "string"}, {"type": "object", "properties": {"b": A}},
         [("form_changed", "?", "?")], [("form_changed", "?", "?")]),
        # JSON Schema
        (an_object(a=A), an_object(a=A, b=A),
         [("member_added", "ok", "ok")], [("member_added", "ok", "ok")]),
        (an_object(a=A), an_object("b", a=A, b=A),
         [("required_member_added", "ok", "breaks")], [("required_member_added", "breaks", "ok")]),
        (an_object("a", a=A), an_object(),
         [("required_member_removed", "breaks", "?")],
         [("required_member_removed", "ok", "breaks")]),
        (an_object(a=A), an_object("a", a=A),
         [("became_required", "ok", "breaks")], [("became_required", "breaks", "ok")]),
        (an_object(a=A) | {"additionalProperties": False},
         an_object(a=A, b=A) | {"additionalProperties": False},
         [("member_added", "breaks", "ok")], [("member_added", "ok", "breaks")]),
        ({"type": "string"}, {"type": "string", "nullable": True},
         [("type_changed", "breaks", "ok")], [("type_changed", "ok", "breaks")]),
        ({"type": "string"}, {"type": ["string", "null"]},
         [("type_changed", "breaks", "ok")], [("type_changed", "ok", "breaks")]),
        ({"enum": ["a", "b"]}, {"enum": ["a", "c"]},
         [("enum_value_removed", "ok", "breaks"), ("enum_value_added", "breaks", "ok")],
         [("enum_value_removed", "breaks", "ok"), ("enum_value_added", "ok", "breaks")]),
        ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 5},
         [("bound_changed", "ok", "breaks")], [("bound_changed", "breaks", "ok")]),
        ({"type": "integer", "minimum": 9}, {"type": "integer"},
         [("bound_changed", "breaks", "ok")], [("bound_changed", "ok", "breaks")]),
        ({"type": "object"}, {"type": "object", "additionalProperties": False},
         [("closed", "ok", "breaks")], [("closed", "breaks", "ok")]),
        ({"type": "string"}, {"type": "string", "pattern": "^a"},
         [("restriction_changed", "ok", "breaks")], [("restriction_changed", "breaks", "ok")]),
        ({"type": "array", "items": A}, {"type": "array", "items": {"type": "integer"}},
         [("type_changed", "breaks", "breaks")], [("type_changed", "breaks", "breaks")]),
        ({"type": "string", "title": "a"}, {"type": "string", "title": "b"},
         [("annotation_changed", "ok", "ok")], [("annotation_changed", "ok", "ok")]),
        ({"type": "string"}, {"type": "string", "format": "email"},
         [("value_added", "?", "?")], [("value_added", "?", "?")]),
        # Beside keywords that join schemas nothing is certain.
        ({"type": "string", "$ref": "#/a"}, {"type": "integer", "$ref": "#/a"},
         [("type_changed", "?", "?")], [("type_changed", "?", "?")]),
        ({"anyOf": [A]}, {"anyOf": [A, {"type": "null"}]},
         [("value_added", "?", "?")], [("value_added", "?", "?")]),
        # Malformed keywords are not judged.
        ({"type": "integer", "minimum": "9"}, {"type": "integer", "minimum": 3},
         [("value_changed", "?", "?")], [("value_changed", "?", "?")]),
        ({"type": "object", "required": "a"}, {"type": "object", "required": ["a"]},
         [("value_changed", "?", "?")], [("value_changed", "?", "?")]),
    ],
)  # fmt: skip
def test_the_effect_by_side(before: Any, after: Any, request_: Effects, response: Effects) -> None:
    assert effects(before, after, "request") == request_
    assert effects(before, after, "response") == response


def test_a_member_may_be_named_like_a_keyword() -> None:
    assert not is_schema({"type": "string", "amount": "integer"})
    assert is_schema({"type": "string"})
    assert not is_schema({"title": "string", "description": "string"})


def test_many_required_members_are_compared_at_once() -> None:
    names = [str(n) for n in range(20_000)]
    before = {"type": "object", "required": names}
    after = {"type": "object", "required": [*names[::-1], "x"]}
    assert effects(before, after, "response") == [("became_required", "breaks", "ok")]
