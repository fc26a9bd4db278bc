from typing import Any

import pytest

from contracts.recognise import read
from proof.cases import Requests
from proof.endpoint_subject import EndpointSubject
from proof.exchange import RuleBreach, operation_checks
from proof.learned import Learned
from proof.messages import WireAnswer, WireRequest
from proof.probe_subject import Spoiled

JSON = (("Content-Type", "application/json"),)
REQUEST = WireRequest("GET", "/a")
WRONG = Spoiled(REQUEST, RuleBreach("query_schema", "query q", "It is no number."))


def subject(**responses: Any) -> EndpointSubject:
    content = {"method": "GET", "path": "/a", "query": {"q": "integer?"}, "responses": responses}
    (check,) = operation_checks(read(content))
    return EndpointSubject(check, Requests(check, "", {}, {}), Learned([check]))


def rules(breaches: list[RuleBreach]) -> list[tuple[str, str]]:
    return [(breach.rule, breach.where) for breach in breaches]


def test_a_valid_request_is_answered_as_declared() -> None:
    tried = subject(**{"200": {"n": "integer"}, "503": "Busy"})
    assert tried.breaches(REQUEST, WireAnswer(200, JSON, b'{"n": 1}')) == []
    assert rules(tried.breaches(REQUEST, WireAnswer(200, JSON, b"{}"))) == [("body_schema", "body")]
    assert rules(tried.breaches(REQUEST, WireAnswer(404))) == [("undeclared_status", "status")]
    assert rules(tried.breaches(REQUEST, WireAnswer(500))) == [("server_error", "status")]
    # An error that the contract names is an answer like others.
    assert tried.breaches(REQUEST, WireAnswer(503)) == []
    assert rules(subject(default={}).breaches(REQUEST, WireAnswer(500))) == [
        ("server_error", "status")
    ]


def test_an_invalid_request_is_refused() -> None:
    tried = subject(**{"200": {"n": "integer"}, "400": {"error": "string"}})
    assert tried.refusal_breaches(WRONG, WireAnswer(400, JSON, b'{"error": "No."}')) == []
    assert tried.refusal_breaches(WRONG, WireAnswer(422)) == []
    assert rules(tried.refusal_breaches(WRONG, WireAnswer(400, JSON, b"{}"))) == [
        ("body_schema", "body")
    ]
    assert rules(tried.refusal_breaches(WRONG, WireAnswer(200, JSON, b"{}"))) == [
        ("accepts_query_schema", "query q")
    ]
    assert rules(tried.refusal_breaches(WRONG, WireAnswer(302))) == [
        ("accepts_query_schema", "query q")
    ]
    assert rules(tried.refusal_breaches(WRONG, WireAnswer(500))) == [("server_error", "status")]


@pytest.mark.parametrize(
    ("responses", "promised", "redirects"),
    [
        ({"200": {}}, True, False),
        ({"default": {}}, True, False),
        ({"302": {}}, True, True),
        ({"3XX": {}}, True, True),
        ({"4XX": {}}, False, False),
    ],
)
def test_whether_success_is_promised(responses: Any, promised: bool, redirects: bool) -> None:
    tried = subject(**responses)
    assert tried.promises_success is promised
    assert tried.is_success(WireAnswer(204))
    assert tried.is_success(WireAnswer(302)) is redirects
    assert not tried.is_success(WireAnswer(400))


def test_what_a_contract_excuses() -> None:
    assert not subject().may_need_credentials
    assert subject().excused == frozenset()
    content = {
        "openapi": "3.1.0",
        "paths": {"/a/{id}": {"get": {"security": [{"key": []}], "responses": {}}}},
    }
    (check,) = operation_checks(read(content))
    signed = EndpointSubject(check, Requests(check, "", {}, {}), Learned([check]))
    assert signed.may_need_credentials
    assert signed.excused == {404, 409, 410}
