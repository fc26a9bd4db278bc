import json
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from contracts.model import Draft, Interface, Located
from contracts.recognise import opaque, read
from contracts.standalone import standalone
from schemas.dialect import Direction
from tests.contracts.hostile import SOUND, spoilt_documents


def interface_of(document: dict[str, Any], draft: Draft) -> Interface:
    plain = opaque(document)
    return Interface("openapi", draft, (), document, plain.files)


def alone(
    schema: Any,
    draft: Draft = "2020-12",
    direction: Direction | None = None,
    document: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return standalone(interface_of(document or {}, draft), Located(schema, ()), direction)


def accepts(schema: dict[str, Any], value: Any) -> bool:
    Draft202012Validator.check_schema(schema)
    return bool(Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    ("draft", "schema", "good", "bad"),
    [
        ("2020-12", True, [1, None], []),
        ("2020-12", False, [], [1, None]),
        ("2020-12", "words", [1], []),
        ("2020-12", {"type": "strnig", "maxLength": -1}, [1], []),
        ("2020-12", {"prefixItems": [{"type": "null"}], "items": False}, [[None]], [[1]]),
        ("2020-12", {"type": "string", "nullable": True}, ["", None], [1]),
        ("2020-12", {"type": "integer", "format": "int32"}, [2**31 - 1, -(2**31)], [2**31]),
        ("2020-12", {"dependentRequired": {"a": ["b"]}}, [{"b": 1}], [{"a": 1}]),
        ("openapi-3.0", {"type": "string", "nullable": True, "enum": ["a"]}, ["a", None], ["b"]),
        ("openapi-3.0", {"nullable": True, "allOf": [{"type": "string"}]}, ["a", None], [1]),
        ("openapi-3.0", {"minimum": 1, "exclusiveMinimum": True}, [2], [1]),
        ("openapi-3.0", {"maximum": 1, "exclusiveMaximum": False}, [1], [2]),
        ("openapi-3.0", {"$ref": "#/T", "type": "integer"}, ["a"], [1]),
        ("2020-12", {"$ref": "#/T", "minLength": 2}, ["aa"], ["a", 1]),
        ("draft-07", {"items": [{"type": "null"}], "additionalItems": False}, [[None]], [[1, 2]]),
        ("draft-07", {"items": {"type": "null"}, "additionalItems": False}, [[None]], [[1]]),
        ("draft-07", {"items": [], "additionalItems": {"type": "null"}}, [[None]], [[1]]),
        ("draft-07", {"dependencies": {"a": ["b"]}}, [{"b": 1}], [{"a": 1}]),
        ("draft-07", {"dependencies": {"a": {"required": ["b"]}}}, [{"b": 1}], [{"a": 1}]),
        ("2020-12", {"items": {"$ref": "#/no"}}, [[1]], []),
        ("2020-12", {"$dynamicRef": "#text"}, ["a"], [1]),
    ],
)  # fmt: skip
def test_a_schema_is_translated(draft: Draft, schema: Any, good: list[Any], bad: list[Any]) -> None:
    taken = alone(schema, draft, document={"T": {"type": "string", "$dynamicAnchor": "text"}})
    assert [value for value in good if not accepts(taken, value)] == []
    assert [value for value in bad if accepts(taken, value)] == []


def test_what_it_refers_to_comes_along() -> None:
    tree = {"properties": {"left": {"$ref": "#/$defs/Tree"}, "is": {"$ref": "a.json#/Tree"}}}
    files = {"a.json": {"Tree": {"type": "string"}}}
    taken = alone({"$ref": "#/$defs/Tree"}, document={"$defs": {"Tree": tree}, "x-files": files})
    assert set(taken["$defs"]) == {"Tree", "Tree_2"}
    assert accepts(taken, {"left": {"left": {"is": "leaf"}}})
    assert not accepts(taken, {"left": {"left": {"is": 1}}})


PET = {
    "type": "object",
    "required": ["id", "name", "secret"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "secret": {"$ref": "#/$defs/Secret"},
    },
}
DEFINITIONS = {"Secret": {"type": "string", "writeOnly": True}, "Pet": PET}


@pytest.mark.parametrize(
    ("direction", "members"),
    [
        ("request", ["name", "secret"]),
        ("response", ["id", "name"]),
        (None, ["id", "name", "secret"]),
    ],
)
def test_what_is_not_sent_in_a_direction_is_left_out(
    direction: Direction | None, members: list[str]
) -> None:
    taken = alone(PET, direction=direction, document={"$defs": DEFINITIONS})
    assert taken["required"] == members
    assert sorted(taken["properties"]) == members


def test_what_is_not_sent_is_not_required_beside_it() -> None:
    schema = {"allOf": [{"$ref": "#/$defs/Pet"}, {"required": ["id", "more"]}], "required": ["id"]}
    taken = alone(schema, direction="request", document={"$defs": DEFINITIONS})
    assert taken["required"] == []
    assert taken["allOf"][1]["required"] == ["more"]


def test_deep_schemas_become_definitions() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"items": schema}
    taken = standalone(opaque(schema), Located(schema, ()))
    assert 4 <= len(taken["$defs"]) <= 6


@given(spoilt_documents())
def test_any_document_gives_schemas_of_the_draft(document: dict[str, Any]) -> None:
    interface = read(document)
    for operation in interface.operations:
        for part in (operation.request, *operation.responses.values()):
            for schema in part.bodies.values():
                taken = standalone(interface, schema, "response")
                json.dumps(taken)
                assert set(taken.get("$defs", {})) >= {
                    ref.removeprefix("#/$defs/") for ref in references(taken)
                }


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(references(part) for part in value))
    if isinstance(value, dict):
        inner = set().union(*(references(part) for part in value.values()))
        ref = value.get("$ref")
        return inner | {ref} if isinstance(ref, str) else inner
    return set()


def test_a_sound_document() -> None:
    interface = read(SOUND, "openapi")
    body = interface.operations[0].responses["200"].bodies["application/json"]
    taken = standalone(interface, body, "response")
    assert accepts(taken, {"id": 1, "name": "Rex", "friend": {"id": 2, "name": "Max"}})
    assert not accepts(taken, {"id": 1, "name": "Rex", "friend": {"id": 2}})
