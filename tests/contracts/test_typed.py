import doctest
import json
from typing import Any

import pytest
from hypothesis import given

from contracts import typed
from contracts.recognise import read
from contracts.typed import REFERENCE, TooManySchemas, type_name, typed_schemas
from tests.contracts.hostile import SOUND, spoilt_documents
from tests.support.contents import CONTENTS


def types(content: dict[str, Any], title: str = "Get profile") -> dict[str, Any]:
    return typed_schemas(read(content), title)


def test_the_examples_hold() -> None:
    assert doctest.testmod(typed).failed == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Get profile", "GetProfile"),
        ("getUser", "GetUser"),
        ("POST /users/{id}/e-mail", "PostUsersByIdEMail"),
        ("2fa", "Type2fa"),
        ("Any", "TypeAny"),
        ("Record", "TypeRecord"),
        ("日本", "Type"),
        ('x"); import os; (', "XImportOs"),
        ("x" * 500, "X" + "x" * 59),
    ],
)
def test_a_name_of_a_type_is_an_identifier(text: str, name: str) -> None:
    assert type_name(text) == name


def test_an_endpoint_is_named_by_its_contract() -> None:
    content = {
        "method": "POST",
        "path": "/users/{id}",
        "request": {"email": "string"},
        "responses": {"201": {"id": "integer"}, "404": {"error": "string?"}},
    }
    assert types(content) == {
        "GetProfileRequest": {
            "type": "object",
            "properties": {"email": {"type": "string"}},
            "required": ["email"],
        },
        "GetProfileResponse201": {
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        },
        "GetProfileResponse404": {"type": "object", "properties": {"error": {"type": "string"}}},
    }
    assert [*types({"method": "GET", "path": "/a", "response": ["string"]})] == [
        "GetProfileResponse"
    ]


def openapi(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "a", "version": "1"},
        "paths": {"/users/{id}": {"put": operation}},
        "components": {"schemas": schemas},
    }


def test_operations_are_named_by_their_ids_and_routes() -> None:
    user = {"$ref": "#/components/schemas/User"}
    body = {"content": {"application/json": {"schema": user}}}
    operation: dict[str, Any] = {
        "requestBody": {
            "content": {
                "application/json": {"schema": user},
                "application/x-www-form-urlencoded": {"schema": {"type": "object"}},
            }
        },
        "responses": {"200": {"description": "a", **body}, "default": {"description": "b", **body}},
    }
    schemas = {"User": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    made = types(openapi(operation, schemas))
    assert made == {
        "PutUsersByIdRequest": {"$ref": REFERENCE + "User"},
        "PutUsersByIdRequestXWwwFormUrlencoded": {"type": "object", "additionalProperties": True},
        "PutUsersByIdResponse200": {"$ref": REFERENCE + "User"},
        "PutUsersByIdResponseDefault": {"$ref": REFERENCE + "User"},
        "User": schemas["User"],
    }
    named = types(openapi(operation | {"operationId": "replaceUser"}, schemas))
    assert "ReplaceUserResponse200" in named


def test_what_is_sent_in_one_direction_has_a_type_for_each() -> None:
    members = {
        "id": {"type": "integer", "readOnly": True},
        "password": {"type": "string", "writeOnly": True},
    }
    schemas = {
        "User": {"type": "object", "properties": members},
        "Users": {"type": "array", "items": {"$ref": "#/components/schemas/User"}},
        "Plain": {"type": "string"},
    }
    both = {
        "type": "object",
        "properties": {
            "users": {"$ref": "#/components/schemas/Users"},
            "plain": {"$ref": "#/components/schemas/Plain"},
        },
    }
    body = {"content": {"application/json": {"schema": both}}}
    operation = {"requestBody": body, "responses": {"200": {"description": "a", **body}}}
    made = types(openapi(operation, schemas))
    assert [*made["User"]["properties"]] == ["id"]
    assert [*made["UserInput"]["properties"]] == ["password"]
    assert made["UsersInput"]["items"] == {"$ref": REFERENCE + "UserInput"}
    request = made["PutUsersByIdRequest"]["properties"]
    assert request["users"] == {"$ref": REFERENCE + "UsersInput"}
    assert request["plain"] == {"$ref": REFERENCE + "Plain"}
    assert "PlainInput" not in made


def test_models_and_messages() -> None:
    assert [*types({"email": "string"}, "User")] == ["User"]
    schema = {"$defs": {"user": {"type": "string"}}, "items": {"$ref": "#/$defs/user"}}
    made = types({"type": "array", **schema}, "User")
    assert made == {"User": {"type": "array", "items": {"$ref": REFERENCE + "User2"}}} | {
        "User2": {"type": "string"}
    }
    channel = {
        "address": "user/created",
        "messages": {"userCreated": {"payload": {"type": "null"}}},
    }
    document = {
        "asyncapi": "3.0.0",
        "info": {"title": "a", "version": "1"},
        "channels": {"user": channel},
        "operations": {
            action: {"action": action, "channel": {"$ref": "#/channels/user"}}
            for action in ("send", "receive")
        },
    }
    assert types(document) == {"UserCreated": {"type": "null"}}
    assert types({"sdl": "type Query { a: Int }"}) == {}
    assert types({"any": {"thing": ["at all"]}}) == {}


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        (
            {"type": ["string", "null"], "format": "date", "pattern": "^a"},
            {"type": ["string", "null"]},
        ),
        ({"enum": ["a", 1, None, True, 1]}, {"enum": ["a", 1, None, True]}),
        ({"type": "number", "enum": [1.5]}, {"type": "number"}),
        ({"enum": [{"$ref": "file:///etc/passwd"}]}, {}),
        ({"enum": ["a\nb"]}, {}),
        ({"const": "a", "type": "string", "allOf": [{}]}, {"enum": ["a"]}),
        ({"prefixItems": [{"type": "null"}]}, {"prefixItems": [{"type": "null"}]}),
        (
            {"patternProperties": {"^a": {"type": "null"}}},
            {"additionalProperties": {"type": "null"}},
        ),
        (
            {"properties": {"a\u202e": {}, "b": False}, "required": ["a\u202e", "b", "c"]},
            {"type": "object", "properties": {"b": {"not": {}}}, "required": ["b"]},
        ),
        (
            {"title": "T", "x-enum-varnames": ["a"], "tsType": "evil()", "customTypePath": "os"},
            {},
        ),
        (
            {"description": 'a """ \\ */ `${b}` \u202e\n  c', "type": "null"},
            {"description": "a ''' / ·/ '${b}' c", "type": "null"},
        ),
        ({"$ref": "https://example.com/a.json"}, {}),
    ],
)
def test_what_is_left_of_a_schema(schema: dict[str, Any], plain: dict[str, Any]) -> None:
    made = typed_schemas(read({"items": schema, "type": "array"}, "json-schema"), "A")
    assert made["A"].get("items", {}) == plain


def test_a_type_that_is_only_itself_is_none() -> None:
    loops = {
        "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "string"}]},
        "B": {"allOf": [{"$ref": "#/$defs/A"}]},
        "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}},
    }
    members = {name: {"$ref": f"#/$defs/{name}"} for name in loops}
    made = types({"type": "object", "properties": members, "$defs": loops}, "All")
    assert made["A"] == {"anyOf": [{"$ref": REFERENCE + "B"}, {"type": "string"}]}
    assert made["B"] == {"allOf": [{}]}
    assert made["Tree"]["properties"]["left"] == {"$ref": REFERENCE + "Tree"}


def test_too_many_schemas_are_refused() -> None:
    count = typed.SCHEMAS_MAX
    definitions = {f"D{number}": {"type": "string"} for number in range(count)}
    members = {name: {"$ref": f"#/$defs/{name}"} for name in definitions}
    with pytest.raises(TooManySchemas, match="more than 2,000 schemas"):
        types({"type": "object", "properties": members, "$defs": definitions})


def check(made: dict[str, Any]) -> None:
    """What holds for all that types are made of."""
    assert len({name.lower() for name in made}) == len(made)
    for name in made:
        assert name.isascii()
        assert name.isidentifier()
    for target in references(made):
        assert target.removeprefix(REFERENCE) in made
    json.dumps(made).encode()


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [ref for part in value for ref in references(part)]
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for part in value.values() for ref in references(part)]
    return []


@given(spoilt_documents())
def test_any_document(document: dict[str, Any]) -> None:
    check(types(document))


@given(CONTENTS)
def test_any_content(content: dict[str, Any]) -> None:
    check(types(content))


def test_a_sound_document() -> None:
    check(types(SOUND))
    assert types(SOUND) == types(json.loads(json.dumps(SOUND)))
