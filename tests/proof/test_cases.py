from typing import Any

import pytest

from contracts.recognise import read
from proof.cases import RequestDraft, Requests, Unmakeable, body_of
from proof.exchange import operation_checks
from proof.parameters import Unwritable
from proof.plain_values import drawn_values
from tests.proof.provider import CONTRACT


def requests_of(content: dict[str, Any], key: str = "", **given: Any) -> Requests:
    checks = operation_checks(read(content))
    check = next(check for check in checks if not key or check.key == key)
    return Requests(check, given.get("base", ""), given.get("known", {}), given.get("fixed", {}))


EVERYWHERE = {
    "method": "PUT",
    "path": "/a/{id}/{kind}",
    "pathParams": {"id": "integer", "kind": "string"},
    "query": {"page": "integer?", "tags": ["string"]},
    "headers": {"X-Team": "string", "X-On": "boolean?"},
    "cookies": {"sid": "string"},
    "request": {"email": "string", "age": "integer?"},
    "response": {},
}


def test_valid_requests_keep_the_contract() -> None:
    made = requests_of(EVERYWHERE, base="/v1")
    drawn = drawn_values(made.valid(), 1, 50)
    assert len(drawn) == 50
    for request in drawn:
        assert request.path.startswith("/v1/a/")
        assert made.breaches(request) == []
        assert all(text.isascii() for header in request.headers for text in header)
    assert len({request.query for request in drawn}) > 5


def test_fixed_values_are_in_each_request() -> None:
    made = requests_of(EVERYWHERE, fixed={"id": "7", "sid": "s", "X-Team": "blue", "tags": "t"})
    for request in drawn_values(made.valid(), 1, 20):
        assert request.path.startswith("/a/7/")
        assert ("X-Team", "blue") in request.headers
        assert ("Cookie", "sid=s") in request.headers
        assert "tags=t" in request.query


def test_a_fixed_value_that_breaks_the_contract_is_told_of() -> None:
    with pytest.raises(Unmakeable, match="--value id: it doesn't fit its schema"):
        requests_of(EVERYWHERE, fixed={"id": "seven"})


def test_known_values_are_taken_often() -> None:
    made = requests_of(CONTRACT, "GET /users/{}", known={"id": (4711, 4712)})
    paths = [request.path for request in drawn_values(made.valid(), 1, 40)]
    assert {"/users/4711", "/users/4712"} <= {*paths}
    assert len({*paths}) > 3
    plain = made.plain()
    assert plain is not None
    assert plain.path == "/users/4712"


def test_the_plain_request_is_of_examples() -> None:
    content = {
        "openapi": "3.1.0",
        "paths": {
            "/a": {
                "post": {
                    "parameters": [
                        {"name": "q", "in": "query", "schema": {"type": "string"}, "example": "x"},
                        {"name": "r", "in": "query", "schema": {"type": "string"}},
                    ],
                    "requestBody": {
                        "content": {
                            "application/json": {
                                "schema": {"type": "object"},
                                "examples": {"bad": {"value": 1}, "good": {"value": {"a": 1}}},
                            }
                        }
                    },
                    "responses": {},
                }
            }
        },
    }
    plain = requests_of(content).plain()
    assert plain is not None
    assert (plain.query, plain.body) == ("q=x", b'{"a": 1}')


def test_what_cannot_be_written_makes_no_request() -> None:
    made = requests_of(EVERYWHERE)
    values: dict[Any, Any] = {("path", "id"): 1, ("path", "kind"): ".."}
    assert made.request(RequestDraft(values)) is None
    values = {("path", "id"): 1, ("path", "kind"): "a", ("header", "X-Team"): "a\r\nX-B: c"}
    assert made.request(RequestDraft(values)) is None


@pytest.mark.parametrize(
    ("media", "value", "body"),
    [
        ("application/json", {"a": "\u20ac"}, b'{"a": "\\u20ac"}'),
        ("application/merge-patch+json", None, b"null"),
        ("application/x-www-form-urlencoded", {"a": 1, "b": "x y"}, b"a=1&b=x+y"),
        ("text/plain", "\u20ac", b"\xe2\x82\xac"),
        ("image/png", "x", b"x"),
        (
            "multipart/form-data",
            {"a": "x", "b": [1]},
            b'--cacp-probe\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'
            b'--cacp-probe\r\nContent-Disposition: form-data; name="b"\r\n\r\n[1]\r\n'
            b"--cacp-probe--\r\n",
        ),
    ],
)
def test_bodies_are_written(media: str, value: Any, body: bytes) -> None:
    assert body_of(media, value) == body


@pytest.mark.parametrize("media", ["image/png", "multipart/form-data", "text/*"])
def test_files_and_forms_are_sent(media: str) -> None:
    operation = {"requestBody": {"required": True, "content": {media: {}}}, "responses": {}}
    if media == "multipart/form-data":
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        operation["requestBody"] = {"required": True, "content": {media: {"schema": schema}}}
    content = {"openapi": "3.1.0", "paths": {"/a": {"post": operation}}}
    made = requests_of(content)
    assert made.plain() is not None
    for request in drawn_values(made.valid(), 1, 10):
        assert request.body is not None
        assert made.breaches(request) == []


def test_a_body_of_text_is_a_text() -> None:
    with pytest.raises(Unwritable):
        body_of("text/plain", 1)


def test_an_operation_without_requests_says_so() -> None:
    with pytest.raises(Unmakeable, match="no value fits the schema of page"):
        requests_of({**EVERYWHERE, "query": {"page": {"not": {}, "type": "string"}}})
    with pytest.raises(Unmakeable, match="bodies of application/xml can't be made"):
        requests_of({**EVERYWHERE, "headers": {"Content-Type": "application/xml"}})
