"""What is the same with all that it refers to."""

from typing import Any

from contracts.model import Located
from contracts.recognise import read
from contracts.sameness import Sameness, references


def content(**definitions: Any) -> dict[str, Any]:
    return {"$ref": "#/$defs/a", "$defs": definitions}


A = {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}, "a": {"$ref": "#/$defs/a"}}}


def is_same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    was, now = read(before, "json-schema"), read(after, "json-schema")
    schema = {"$ref": "#/$defs/a"}
    return Sameness(was, now).same(Located(schema, ()), Located(schema, ("x",)))


def test_a_change_is_seen_through_references_and_cycles() -> None:
    before = content(a=A, b={"type": "string"}, c={"type": "string"})
    assert is_same(before, content(a=A, b={"type": "string"}, c={"type": "integer"}))
    assert not is_same(before, content(a=A, b={"type": "integer"}, c={"type": "string"}))
    assert not is_same(before, content(a=A, c={"type": "string"}))


def test_references_are_found_wherever_they_stand() -> None:
    assert set(references({"anyOf": [{"$ref": "#/a"}, {"items": {"$dynamicRef": "#b"}}]})) == {
        "#/a",
        "#b",
    }
    deep: Any = {"$ref": "#/a"}
    for _ in range(300):
        deep = [deep]
    assert list(references(deep)) == ["#too-deep"]
