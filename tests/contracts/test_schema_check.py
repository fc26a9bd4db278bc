from typing import Any

import pytest

from contracts.model import Draft, Located
from contracts.reading import ContentReading
from contracts.schema_check import check_schemas


def problems(schema: Any, draft: Draft = "2020-12") -> list[tuple[tuple[str | int, ...], str]]:
    reading = ContentReading(schema if isinstance(schema, dict) else {})
    check_schemas(reading, [Located(schema, ())], draft)
    return [(problem.path, problem.why) for problem in reading.problems]


@pytest.mark.parametrize(
    ("schema", "path", "why"),
    [
        ({"type": "strnig"}, ("type",), '"type" is one of array, boolean, '),
        ({"type": []}, ("type",), "or a list of them; this is a list."),
        ({"required": True}, ("required",), "names of members, beside the properties"),
        ({"properties": ["a"]}, ("properties",), "an object of schemas by name"),
        ({"properties": {"a": "string"}}, ("properties", "a"), "A schema is an object or a"),
        ({"items": {"minimum": "1"}}, ("items", "minimum"), '"minimum" is a number; this is "1".'),
        ({"maxLength": -1}, ("maxLength",), "a whole number from 0"),
        ({"maxLength": True}, ("maxLength",), "a whole number from 0"),
        ({"anyOf": []}, ("anyOf",), "a list of schemas, at least one"),
        ({"not": {"enum": "a"}}, ("not", "enum"), '"enum" is a list of values'),
        ({"$ref": 1}, ("$ref",), '"$ref" is a reference such as'),
        ({"$ref": "#/no"}, (), 'The reference "#/no" leads to nothing.'),
        ({"allOf": [{"$ref": "http://a/b"}]}, ("allOf", 0), "nothing is fetched"),
        ({"multipleOf": 0}, ("multipleOf",), "a number above 0"),
        ({"exclusiveMinimum": True}, ("exclusiveMinimum",), "a number; this is true"),
        ("string", (), 'A schema is an object or a boolean; this is "string".'),
    ],
)
def test_what_is_wrong_is_noted_with_its_place(
    schema: Any, path: tuple[str | int, ...], why: str
) -> None:
    ((where, text),) = problems(schema)
    assert where == path
    assert why in text


def test_each_schema_is_checked_once_however_often_it_is_referred_to() -> None:
    schema = {
        "properties": {name: {"$ref": "#/$defs/bad"} for name in "abc"},
        "$defs": {"bad": {"type": "x", "items": {"$ref": "#"}}},
    }
    assert [path for path, _ in problems(schema)] == [("$defs", "bad", "type")]


def test_drafts_have_their_own_forms() -> None:
    assert problems({"minimum": 1, "exclusiveMinimum": True}, "openapi-3.0") == []
    beside = {"$ref": "#/definitions/a", "type": "x", "definitions": {"a": {}}}
    assert problems(beside, "draft-07") == []
    assert [path for path, _ in problems(beside)] == [("type",)]


def test_references_are_followed_into_files() -> None:
    schema = {"$ref": "a.json#/B", "x-files": {"a.json": {"B": {"type": "x"}}}}
    ((path, why),) = problems(schema)
    assert path == ("B", "type")
    assert why.startswith("In a.json: ")


def test_schemas_too_deep_to_check_are_said() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(600):
        schema = {"items": schema}
    reading = ContentReading({})
    check_schemas(reading, [Located(schema, ())], "2020-12")
    assert [note.why for note in reading.warnings] == [
        "The schemas from here on were not checked: there are too many."
    ]
