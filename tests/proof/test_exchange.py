from typing import Any

import pytest

from contracts.recognise import read
from proof.exchange import OperationCheck, RuleBreach, operation_checks
from proof.messages import WireAnswer, WireRequest

JSON = (("Content-Type", "application/json"),)


def check_of(**content: Any) -> OperationCheck:
    (check,) = operation_checks(read({"method": "POST", "path": "/a/{id}", **content}))
    return check


CHECK = check_of(
    pathParams={"id": "integer"},
    query={"page": "integer?", "tags": "string[]?"},
    headers={"X-Team": "string"},
    request={"email": "string", "age": "integer?"},
    responses={"200": {"ok": "boolean"}, "4XX": {"error": "string"}, "204": {}},
)


def asked(
    path: str = "/a/7",
    query: str = "",
    headers: tuple[tuple[str, str], ...] = (("X-Team", "blue"), *JSON),
    body: bytes | None = b'{"email": "a"}',
) -> list[RuleBreach]:
    return CHECK.request_breaches(WireRequest("POST", path, query, headers, body), path)


def test_a_request_that_keeps_the_contract_breaks_nothing() -> None:
    assert asked() == []
    assert asked("/a/-3", "page=2&tags=x&tags=y&more=1") == []
    assert (
        asked(headers=(("x-team", "blue"), ("content-type", "Application/JSON; charset=x"))) == []
    )


@pytest.mark.parametrize(
    ("given", "rule", "where"),
    [
        ({"path": "/a/x"}, "path_schema", "path id"),
        ({"query": "page=x"}, "query_schema", "query page"),
        ({"query": "page="}, "query_schema", "query page"),
        ({"headers": JSON}, "missing", "header X-Team"),
        ({"headers": (("X-Team", "b"),)}, "media_type", "header Content-Type"),
        ({"body": None}, "missing", "body"),
        ({"body": b"{"}, "malformed_body", "body"),
        ({"body": b'{"email": 1}'}, "body_schema", "body/email"),
        ({"body": b"{}"}, "body_schema", "body"),
    ],
)
def test_what_breaks_the_contract_is_said(given: Any, rule: str, where: str) -> None:
    ((found_rule, found_where, why),) = asked(**given)
    assert (found_rule, found_where) == (rule, where)
    assert why.endswith(".") or '"' in why


def answered(status: int, body: bytes = b"", headers: Any = JSON, method: str = "POST") -> Any:
    return [
        (b.rule, b.where) for b in CHECK.answer_breaches(WireAnswer(status, headers, body), method)
    ]


def test_answers() -> None:
    assert answered(200, b'{"ok": true}') == []
    assert answered(404, b'{"error": "No."}') == []
    assert answered(204, headers=()) == []
    assert answered(200, headers=(), method="HEAD") == []
    assert answered(200, b'{"ok": 1}') == [("body_schema", "body/ok")]
    assert answered(404, b'{"ok": true}') == [("body_schema", "body")]
    assert answered(200, b"{}", (("Content-Type", "text/html"),)) == [
        ("media_type", "header Content-Type")
    ]
    assert answered(500) == [("undeclared_status", "status")]


def test_the_most_exact_status_counts() -> None:
    check = check_of(responses={"404": "Gone", "4XX": {"error": "string"}, "default": {"a": "int"}})
    names = [check.response_for(status) for status in (404, 418, 200)]
    assert [name and name[0] for name in names] == ["404", "4XX", "default"]


def test_forms_and_texts_are_checked() -> None:
    form = check_of(
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        request={"age": "integer", "name": "string"},
    )
    headers = (("Content-Type", "application/x-www-form-urlencoded"),)

    def breaches(check: OperationCheck, body: bytes, headers: Any) -> list[str]:
        request = WireRequest("POST", "/a/1", "", headers, body)
        return [breach.rule for breach in check.request_breaches(request, "/a/1")]

    assert breaches(form, b"age=3&name=4", headers) == []
    assert breaches(form, b"age=x&name=4", headers) == ["body_schema"]
    assert breaches(form, b"name=4", headers) == ["body_schema"]
    listed = check_of(
        headers={"Content-Type": "application/x-www-form-urlencoded"}, request={"tags": ["integer"]}
    )
    assert breaches(listed, b"tags=1&tags=2", headers) == []
    assert breaches(listed, b"tags=1&tags=x", headers) == ["body_schema"]
    text = check_of(
        headers={"Content-Type": "text/plain"}, request={"type": "string", "maxLength": 2}
    )
    assert breaches(text, b"ab", (("Content-Type", "text/plain"),)) == []
    assert breaches(text, b"abc", (("Content-Type", "text/plain"),)) == ["body_schema"]


def test_response_headers_and_cookies() -> None:
    content = {
        "openapi": "3.1.0",
        "paths": {
            "/a": {
                "get": {
                    "parameters": [
                        {
                            "name": "s",
                            "in": "cookie",
                            "required": True,
                            "schema": {"type": "integer"},
                        }
                    ],
                    "responses": {
                        "200": {
                            "description": "",
                            "headers": {"X-N": {"required": True, "schema": {"type": "integer"}}},
                        }
                    },
                }
            }
        },
    }
    (check,) = operation_checks(read(content))

    def cookie(text: str) -> list[str]:
        request = WireRequest("GET", "/a", "", (("Cookie", text),))
        return [breach.rule for breach in check.request_breaches(request, "/a")]

    assert cookie("t=1; s=2") == []
    assert cookie("s=x") == ["cookie_schema"]
    assert cookie("t=1") == ["missing"]
    assert check.answer_breaches(WireAnswer(200, (("x-n", "3"),)), "GET") == []
    assert [b.rule for b in check.answer_breaches(WireAnswer(200), "GET")] == ["missing"]
    assert [b.rule for b in check.answer_breaches(WireAnswer(200, (("X-N", "a"),)), "GET")] == [
        "header_schema"
    ]


def test_paths_without_placeholders_come_first() -> None:
    paths: dict[str, Any] = {
        path: {"get": {"responses": {}}} for path in ("/a/{b}", "/a/me", "/{x}/{y}.json", "/a")
    }
    checks = operation_checks(read({"openapi": "3.1.0", "paths": paths}))
    first = next(check for check in checks if check.matches("/a/me"))
    assert first.operation.route == "/a/me"
    assert next(check for check in checks if check.matches("/a/7")).operation.route == "/a/{b}"
    assert not any(check.matches("/a/b/c") for check in checks)


def test_a_breach_is_told_with_its_place() -> None:
    assert str(RuleBreach("missing", "query q", "It is required.")) == "query q: It is required."
    assert str(RuleBreach("credentials", "", "It needs a key.")) == "It needs a key."
