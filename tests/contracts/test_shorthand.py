from typing import Any

import pytest

from contracts.model import Located
from contracts.shorthand import DEPTH_MAX, ShorthandReader, is_schema, is_shorthand, type_of


def converted(value: Any) -> tuple[Any, list[tuple[tuple[str | int, ...], str]]]:
    notes: list[tuple[tuple[str | int, ...], str]] = []
    reader = ShorthandReader(lambda place, why: notes.append((place.path, why)))
    return reader.schema(Located(value, ())), notes


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("string", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("str?", {"type": "string"}),
        (" number ", {"type": "number"}),
        ("string|null", {"type": ["string", "null"]}),
        ("int | string?", {"type": ["integer", "string"]}),
        ("integer[]", {"type": "array", "items": {"type": "integer"}}),
        ("uuid", {"type": "string", "format": "uuid"}),
        ("date|null", {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}),
        ("any", {}),
        ("an e-mail address", None),
        ("", None),
        ("?", None),
        ("string|", None),
        ("string" + " " * 300, None),
    ],
)
def test_a_text_names_a_type(text: str, schema: Any) -> None:
    assert type_of(text) == schema


def test_an_object_says_its_members_and_which_are_required() -> None:
    schema, notes = converted(
        {
            "email": "string",
            "age": "integer?",
            "tags": ["string"],
            "name?": "str",
            "at": {"x": "int"},
        }
    )
    assert notes == []
    assert schema == {
        "type": "object",
        "properties": {
            "email": {"type": "string"},
            "age": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "name": {"type": "string"},
            "at": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        },
        "required": ["email", "tags", "at"],
    }


def test_schemas_stand_in_shorthand_as_they_are() -> None:
    schema, notes = converted(
        {
            "role": {"enum": ["a", "b"]},
            "page": {"type": "integer", "default": 1},
            "size": {"type": "integer", "required": False},
            "sort": {"type": "string", "required": True},
        }
    )
    assert notes == []
    assert schema["required"] == ["role", "sort"]
    assert schema["properties"]["sort"] == {"type": "string"}
    assert schema["properties"]["page"] == {"type": "integer", "default": 1}


def test_what_names_no_type_stays_and_is_noted() -> None:
    given = {"id": 1, "on": True, "kind": ["a", "b"], "ok": "string", "like": {"name": "Ana"}}
    schema, notes = converted(given)
    assert schema["properties"]["id"] == 1
    assert schema["properties"]["on"] == "true"
    assert schema["properties"]["kind"] == ["a", "b"]
    assert schema["required"] == ["ok"]
    assert [path for path, _ in notes] == [("id",), ("on",), ("kind",), ("like", "name")]
    assert notes[0][1].startswith('1 names no type: write one such as "string", "integer?"')
    assert notes[2][1] == 'A list of shorthand has one element, the type of all: ["string"].'


def test_shorthand_is_read_to_a_depth() -> None:
    deep: Any = "string"
    for _ in range(DEPTH_MAX + 1):
        deep = {"a": deep}
    _, notes = converted(deep)
    assert len(notes) == 1
    assert "write a JSON Schema with $defs" in notes[0][1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "string"}, True),
        ({"type": ["string", "null"], "x": 1}, False),
        ({"type": "admin", "title": "string"}, False),
        ({"properties": {}}, True),
        ({"enum": ["a"]}, True),
        ({"title": "string", "description": "string"}, False),
        ({"$ref": "#/a"}, True),
        ("string", False),
        (True, False),
    ],
)
def test_a_schema_is_told_from_shorthand(value: Any, expected: bool) -> None:
    assert is_schema(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "string", "b": [{"c": "int?"}], "d": {"type": "string"}}, True),
        ({"a": "string", "b": "words"}, False),
        ({"a": ["string", "null"]}, False),
        ({"a": {}}, False),
        ({}, False),
        (1, False),
    ],
)
def test_shorthand_names_types_throughout(value: Any, expected: bool) -> None:
    assert is_shorthand(value) is expected


@pytest.mark.parametrize(
    ("value", "needed"),
    [
        ("string", True),
        ("string?", False),
        ("words", False),
        ({"type": "string"}, True),
        (1, False),
    ],
)
def test_a_member_is_needed_unless_it_says_otherwise(value: Any, needed: bool) -> None:
    assert ShorthandReader(lambda place, why: None).member(Located(value, ()))[1] is needed
