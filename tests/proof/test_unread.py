from typing import Any

import pytest

from contracts.recognise import read
from proof.exchange import OperationCheck, operation_checks
from proof.messages import WireAnswer
from proof.unread import unread_answer, unread_schema

OBJECT = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
TEXT = {"type": "string"}


def check_of(media: str, schema: Any) -> OperationCheck:
    responses = {"200": {"description": "", "content": {media: {"schema": schema}}}}
    paths = {"/x": {"get": {"responses": responses}}}
    content = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    (check,) = operation_checks(read(content))
    return check


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (OBJECT, None),
        (True, None),
        ({"type": "string", "pattern": "^[a-z]+$"}, None),
        ({"$ref": "#/components/schemas/None"}, "the reference #/components/schemas/None leads no"),
        ({"items": {"$ref": "http://h/x.json"}}, "the reference http://h/x.json leads nowhere"),
        ({"type": "string", "pattern": "^[0-9]++$("}, "what stands at /pattern can't be read"),
        ({"minLength": "x"}, "minLength is not "),
        ({"items": "text"}, "what stands there is no schema"),
    ],
)
def test_what_no_value_is_held_against_is_said(schema: Any, why: str | None) -> None:
    check = check_of("application/json", schema)
    lines = list(unread_schema(check.interface, check.responses["200"].bodies["application/json"]))
    assert [line[: len(why or "")] for line in lines[:1]] == ([] if why is None else [why])


@pytest.mark.parametrize(
    ("declared", "media", "schema", "is_read"),
    [
        ("application/json", "application/json", OBJECT, True),
        ("*/*", "text/html", OBJECT, True),
        ("text/json", "text/json", OBJECT, True),
        ("application/xml", "application/xml", OBJECT, False),
        ("text/html", "text/html", OBJECT, False),
        ("text/plain", "text/plain", TEXT, True),
        ("*/*", "text/plain", TEXT, True),
        ("image/png", "image/png", {"type": "string", "format": "binary"}, True),
        ("application/octet-stream", "application/octet-stream", {}, True),
        ("application/json", "text/other", OBJECT, True),
    ],
)
def test_a_body_that_nothing_reads_is_said(
    declared: str, media: str, schema: Any, is_read: bool
) -> None:
    answer = WireAnswer(200, (("Content-Type", media),), b"<x/>")
    lines = list(unread_answer(check_of(declared, schema), answer, "GET"))
    right = f"of response 200 the body is unread: nothing here reads {media}."
    assert lines == ([] if is_read else [right])
    assert list(unread_answer(check_of(declared, schema), answer, "HEAD")) == []


def test_a_range_is_held_against_as_json() -> None:
    check = check_of("*/*", OBJECT)
    answer = WireAnswer(200, (("Content-Type", "text/html"),), b"<oops")
    assert [breach.rule for breach in check.answer_breaches(answer, "GET")] == ["malformed_body"]
