import json
from typing import Any

import pytest
from graphql import build_schema, parse

from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.graphql_http import (
    answered,
    data_breaches,
    graphql_request,
    graphql_schema,
    misfit,
    validation_problem,
)
from proof.messages import WireAnswer
from tests.proof.graphql_provider import CONTENT, SDL

SCHEMA = build_schema(SDL)
JSON = (("Content-Type", "application/graphql-response+json"),)
USER = {"__typename": "User", "id": "1", "name": "Ana"}


def test_a_contract_of_graphql_has_a_schema() -> None:
    assert graphql_schema(AgreedContract("G", CONTENT)) is not None
    assert graphql_schema(AgreedContract("A", {"method": "GET", "path": "/a"})) is None
    assert graphql_schema(AgreedContract("G", {"graphql": "type Query { a: Missing }"})) is None


def test_requests_are_json() -> None:
    request = graphql_request("/graphql", "{ a }")
    assert json.loads(request.body or b"") == {"query": "{ a }"}


def test_what_is_wrong_with_a_request() -> None:
    assert validation_problem(SCHEMA, '{ user(id: "1") { name } }') is None
    assert "required" in (validation_problem(SCHEMA, "{ user { name } }") or "")
    assert "Syntax Error" in (validation_problem(SCHEMA, "{") or "")
    assert validation_problem(SCHEMA, "{ a " * 30_000) is not None


@pytest.mark.parametrize(
    ("headers", "body", "rule"),
    [
        ((("Content-Type", "text/html"),), b"{}", "media_type"),
        (JSON, b"{", "malformed_body"),
        (JSON, b"[]", "body_schema"),
        (JSON, b"{}", "body_schema"),
        (JSON, b'{"errors": []}', "body_schema"),
    ],
)
def test_what_is_no_answer_is_said(headers: Any, body: bytes, rule: str) -> None:
    breach = answered(WireAnswer(200, headers, body))
    assert isinstance(breach, RuleBreach)
    assert breach.rule == rule
    assert answered(WireAnswer(200, JSON, b'{"data": null}')) == {"data": None}


@pytest.mark.parametrize(
    ("query", "value", "where"),
    [
        ('{ user(id: "1") { name } }', {"user": USER}, None),
        ('{ user(id: "1") { name } }', {"user": None}, None),
        ('{ me: user(id: "1") { n: name } }', {"me": {**USER, "n": "Ana"}}, None),
        ("{ nodes(first: 1) { id } }", {"nodes": [USER]}, None),
        ('{ user(id: "1") { name } }', {"user": {**USER, "name": None}}, "body/data/user/name"),
        ('{ user(id: "1") { name } }', {"user": {**USER, "name": 1}}, "body/data/user/name"),
        ('{ user(id: "1") { name } }', {}, "body/data/user"),
        ('{ user(id: "1") { name } }', {"user": []}, "body/data/user"),
        ('{ user(id: "1") { name } }', [], "body/data"),
        ("{ nodes(first: 1) { id } }", {"nodes": [None]}, "body/data/nodes"),
        ("{ nodes(first: 1) { id } }", {"nodes": [{**USER, "id": None}]}, "body/data/nodes/0/id"),
    ],
)
def test_data_is_held_against_the_request(query: str, value: Any, where: str | None) -> None:
    breaches = data_breaches(SCHEMA, parse(query), value)
    assert [breach.where for breach in breaches] == ([] if where is None else [where])


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("id", ["1", 7], [None, 1.5, {}]),
        ("name", ["a"], [1, None]),
        ("role", ["ADMIN"], ["OWNER", 1]),
        ("born", ["any", 3, None], []),
        ("friends", [[], [{}]], [None, {}, [None], ["x"]]),
    ],
)
def test_values_are_of_their_types(field: str, good: list[Any], bad: list[Any]) -> None:
    kind = SCHEMA.type_map["User"].fields[field].type  # type: ignore[attr-defined]
    assert [value for value in good if misfit(kind, value) is not None] == []
    assert [value for value in bad if misfit(kind, value) is None] == []
