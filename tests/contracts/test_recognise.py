import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.model import Located
from contracts.reading import NOTES_MAX, WHY_MAX
from contracts.recognise import DIALECTS, is_parsed, opaque, read
from contracts.standalone import standalone
from schemas.plain import one_line
from tests.contracts.hostile import NAMES, SOUND, SPOILT, spoilt_documents

CONTENTS = st.dictionaries(st.sampled_from(NAMES), SPOILT, max_size=6) | spoilt_documents()
JSON_DIALECTS = ("openapi", "asyncapi", "endpoint", "json-schema", "shorthand", "opaque", None)


@given(CONTENTS, st.sampled_from(JSON_DIALECTS))
def test_any_json_is_read(content: dict[str, Any], dialect: str | None) -> None:
    before = json.dumps(content)
    interface = read(content, dialect)
    keys = [operation.key for operation in interface.operations]
    assert len(keys) == len(set(keys))
    assert dialect is None or interface.dialect in (dialect, "opaque")
    assert dialect is not None or not interface.problems
    assert len(interface.problems) <= NOTES_MAX + 1
    for note in interface.problems + interface.warnings:
        assert note.why == one_line(note.why, WHY_MAX)
    for operation in interface.operations:
        for part in (operation.request, *operation.responses.values()):
            for schema in part.bodies.values():
                json.dumps(standalone(interface, schema, "request"))
    assert json.dumps(content) == before


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        ({"openapi": "3.0.3", "paths": {}}, "openapi"),
        ({"paths": {"/a": {"get": {"responses": {}}}}}, "openapi"),
        ({"swagger": "2.0", "paths": {"/a": {"get": {}}}}, "opaque"),
        ({"asyncapi": "3.0.0", "channels": {}}, "asyncapi"),
        ({"graphql": "type Query { a: Int }"}, "graphql"),
        ({"schema": "type Query { a: Int }", "version": 3}, "graphql"),
        ({"proto": "message M { optional int32 a = 1; }"}, "protobuf"),
        ({"files": {"a.proto": 'syntax = "proto3";'}}, "protobuf"),
        ({"method": "GET", "path": "/a"}, "endpoint"),
        ({"response": {"total": "number"}}, "endpoint"),
        ({"request": {"a": "string"}, "version": 3}, "endpoint"),
        ({"responses": {"200": {"a": "string"}}, "path": "/a"}, "endpoint"),
        ({"type": "object", "properties": {"response": {"type": "string"}}}, "json-schema"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "json-schema"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, "json-schema"),
        ({"email": "string", "age": "integer?"}, "shorthand"),
        ({"user": {"name": "string"}, "tags": ["string"]}, "shorthand"),
        ({"email": "string", "note": "the user's address"}, "opaque"),
        ({"path": "/search"}, "opaque"),
        ({"name": "User", "fields": {"id": "integer"}}, "opaque"),
        ({}, "opaque"),
    ],
)
def test_a_dialect_is_recognised(content: dict[str, Any], dialect: str) -> None:
    interface = read(content)
    assert interface.dialect == dialect
    assert interface.problems == ()
    assert read(content, dialect).dialect == dialect


def test_contents_that_take_a_parser_are_told_beforehand() -> None:
    assert is_parsed({"graphql": "type Query { a: Int }"}, None)
    assert is_parsed({"proto": ""}, None)
    assert is_parsed({"files": {}}, None)
    assert is_parsed({}, "protobuf")
    assert not is_parsed({"method": "GET", "path": "/a"}, None)


def test_opaque_content_is_unread() -> None:
    content = {"decision": "We use UTC."}
    assert read(content) == opaque(content)
    assert read(content).unread == (Located(content, ()),)


def test_what_is_wrong_is_a_problem_only_of_a_dialect_that_is_named() -> None:
    content = {"openapi": "3.1.0", "paths": {"pets": {}}}
    named, recognised = read(content, "openapi"), read(content)
    assert [(problem.path, problem.why) for problem in named.problems] == [
        (("paths", "pets"), 'A path begins with /; this is "pets".')
    ]
    assert (recognised.problems, recognised.warnings) == ((), named.problems)
    assert recognised.unread == (Located({}, ("paths", "pets")),)


def test_an_unknown_dialect_is_a_problem() -> None:
    (problem,) = read({}, "raml").problems
    assert problem.why.startswith('"raml" is no dialect: it is one of openapi, ')


def test_a_sound_document_is_read_whole() -> None:
    interface = read(SOUND, "openapi")
    assert (interface.problems, interface.warnings, interface.unread) == ((), (), ())
    assert [operation.key for operation in interface.operations] == [
        "GET /pets/{}",
        "PUT /pets/{}",
        "POST callback changed {$request.query.url} of PUT /pets/{}",
        "POST webhook sold",
    ]


def test_a_document_that_refers_to_its_parts_too_often_is_not_read() -> None:
    item = {"get": {"parameters": [{"$ref": "#/components/parameters/a"}] * 2000}}
    content = {
        "openapi": "3.1.0",
        "paths": {f"/{number}": {"$ref": "#/x-item"} for number in range(200)},
        "x-item": item,
        "components": {"parameters": {"a": {"name": "a", "in": "query"}}},
    }
    named = read(content, "openapi")
    assert named.dialect == "opaque"
    assert [problem.why for problem in named.problems] == [
        "It refers to its parts more than 200000 times, so it was not read."
    ]


def test_deep_json_is_read() -> None:
    deep: Any = "string"
    for _ in range(900):
        deep = {"a": [deep]}
    for content in (
        {"response": deep},
        {"type": "object", "properties": {"a": deep}},
        deep,
        {"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": deep}}}}},
    ):
        for dialect in ("openapi", "endpoint", "json-schema", "shorthand", None):
            assert read(content, dialect).dialect in (dialect, "opaque", "endpoint", "openapi") or (
                dialect is None
            )


def test_names_of_dialects_are_unique() -> None:
    names = [dialect.name for dialect in DIALECTS]
    assert len(names) == len(set(names))
