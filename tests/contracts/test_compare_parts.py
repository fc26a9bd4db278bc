"""Parameters, headers and bodies."""

from typing import Any

import pytest

from contracts.compare import compare
from contracts.recognise import read

JsonObject = dict[str, Any]


def document(operation: JsonObject) -> JsonObject:
    whole = {"responses": {"200": {"description": "it"}}, **operation}
    info = {"title": "t", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {"/a": {"post": whole}}}


def only(before: JsonObject, after: JsonObject) -> tuple[str, str, str]:
    """The rule, and the effects on consumers and providers, of the only change."""
    found = compare(read(document(before)), read(document(after)))
    assert len(found.changes) == 1, found
    change = found.changes[0]
    return change.rule, change.consumer, change.provider


def parameters(*given: JsonObject) -> JsonObject:
    return {"parameters": [{"in": "query", "schema": {"type": "string"}, **one} for one in given]}


def typed(**schema: Any) -> JsonObject:
    """A parameter of a schema."""
    return parameters({"name": "q", "schema": schema})


def header_typed(**schema: Any) -> JsonObject:
    headers = {"X-Q": {"schema": schema}}
    return {"responses": {"200": {"description": "it", "headers": headers}}}


def body(*media: str, required: bool = False) -> JsonObject:
    content = {one: {"schema": {"type": "object"}} for one in media}
    return {"requestBody": {"content": content, "required": required}}


def answer(*media: str) -> JsonObject:
    content = {one: {"schema": {"type": "object"}} for one in media}
    return {"responses": {"200": {"description": "it", "content": content}}}


def headers(**given: bool) -> JsonObject:
    described = {
        name: {"required": required, "schema": {"type": "string"}}
        for name, required in given.items()
    }
    return {"responses": {"200": {"description": "it", "headers": described}}}


JSON, XML = "application/json", "application/xml"
PLAIN: JsonObject = {}
CASES: list[tuple[JsonObject, JsonObject, tuple[str, str, str]]] = [
    (PLAIN, parameters({"name": "q"}), ("parameter_added", "compatible", "unknown")),
    (parameters({"name": "q"}), PLAIN, ("parameter_removed", "unknown", "compatible")),
    (
        PLAIN,
        parameters({"name": "q", "required": True}),
        ("required_parameter_added", "breaking", "unknown"),
    ),
    (
        parameters({"name": "q", "required": True}),
        PLAIN,
        ("required_parameter_removed", "unknown", "breaking"),
    ),
    (
        parameters({"name": "q"}),
        parameters({"name": "q", "required": True}),
        ("became_required", "breaking", "compatible"),
    ),
    (
        parameters({"name": "q", "schema": {"type": "string"}}),
        parameters({"name": "q", "schema": {"type": "string", "maxLength": 3}}),
        ("bound_changed", "breaking", "compatible"),
    ),
    (
        parameters({"name": "q", "in": "query", "style": "form", "explode": True}),
        parameters({"name": "q", "in": "query", "style": "pipeDelimited", "explode": False}),
        ("style_changed", "breaking", "breaking"),
    ),
    # What an integer is written as is a text: only a body's JSON tells them apart.
    (typed(type="integer"), typed(type="string"), ("type_changed", "compatible", "breaking")),
    (typed(type="string"), typed(type="number"), ("type_changed", "breaking", "compatible")),
    (
        typed(type="boolean"),
        typed(type="string", minLength=1),
        ("type_changed", "compatible", "breaking"),
    ),
    (
        typed(type="array", items={"type": "integer"}),
        typed(type="array", items={"type": "string"}),
        ("type_changed", "compatible", "breaking"),
    ),
    (
        typed(type="integer"),
        typed(type="string", enum=["a", "b"]),
        ("type_changed", "breaking", "breaking"),
    ),
    (
        typed(type="integer", enum=[1, 2]),
        typed(type="string", enum=["1", "2"]),
        ("type_changed", "unknown", "breaking"),
    ),
    (
        typed(type="integer"),
        typed(type="string", maxLength=5),
        ("type_changed", "unknown", "breaking"),
    ),
    (
        header_typed(type="integer"),
        header_typed(type="string"),
        ("type_changed", "breaking", "compatible"),
    ),
    (PLAIN, body(JSON), ("body_added", "compatible", "unknown")),
    (PLAIN, body(JSON, required=True), ("body_added", "breaking", "unknown")),
    (body(JSON), PLAIN, ("body_removed", "unknown", "compatible")),
    (body(JSON), body(JSON, required=True), ("became_required", "breaking", "compatible")),
    (body(JSON), body(JSON, XML), ("media_type_added", "compatible", "breaking")),
    (body(JSON, XML), body(JSON), ("media_type_removed", "breaking", "compatible")),
    (PLAIN, answer(JSON), ("body_added", "compatible", "breaking")),
    (answer(JSON), PLAIN, ("body_removed", "breaking", "compatible")),
    (answer(JSON), answer(JSON, XML), ("media_type_added", "compatible", "breaking")),
    (answer(JSON, XML), answer(JSON), ("media_type_removed", "breaking", "compatible")),
    (PLAIN, headers(etag=True), ("required_header_added", "compatible", "breaking")),
    (PLAIN, headers(etag=False), ("header_added", "compatible", "compatible")),
    (headers(etag=True), PLAIN, ("required_header_removed", "breaking", "compatible")),
    (headers(etag=False), PLAIN, ("header_removed", "breaking", "compatible")),
]


@pytest.mark.parametrize(("before", "after", "expected"), CASES)
def test_what_is_sent_beside_schemas(
    before: JsonObject, after: JsonObject, expected: tuple[str, str, str]
) -> None:
    assert only(before, after) == expected


def test_a_parameter_moves_to_another_place() -> None:
    was = document(parameters({"name": "q", "required": True}))
    now = document(parameters({"name": "q", "required": True, "in": "header"}))
    found = compare(read(was), read(now))
    rules = {change.rule for change in found.changes}
    assert rules == {"required_parameter_removed", "required_parameter_added"}
    assert found.verdict == "breaking"


def test_names_of_headers_have_no_case_and_a_range_of_media_types_holds_each() -> None:
    one, two = (document(parameters({"name": n, "in": "header"})) for n in ("X-Id", "x-id"))
    assert compare(read(one), read(two)).verdict == "compatible"
    wild, plain = (document(body(media)) for media in ("application/*", JSON))
    assert compare(read(plain), read(wild)).verdict == "compatible"
