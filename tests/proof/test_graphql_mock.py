import json
from typing import Any

import pytest
from graphql import build_schema, parse

from proof.agreed import AgreedContract
from proof.graphql_http import data_breaches, graphql_request
from proof.graphql_mock import graphql_answer
from proof.graphql_subject import GraphqlSubject, root_fields
from proof.messages import WireRequest
from proof.mock import Mock
from proof.plain_values import drawn_values
from tests.proof.graphql_provider import CONTENT, SDL

SCHEMA = build_schema(SDL)


def asked(body: Any) -> tuple[int, Any]:
    request = WireRequest("POST", "/graphql", "", (), json.dumps(body).encode())
    answer, breach = graphql_answer(SCHEMA, request)
    assert (breach is None) == (answer.status == 200)
    return answer.status, json.loads(answer.body)


def test_values_are_made_by_their_types() -> None:
    query = '{ me: user(id: "1") { id name role born friends { name } } nodes(first: 1) { id } }'
    assert asked({"query": query}) == (
        200,
        {
            "data": {
                "me": {
                    "id": "1",
                    "name": "text",
                    "role": "ADMIN",
                    "born": "text",
                    "friends": [{"name": "text"}],
                },
                "nodes": [{"id": "1"}],
            }
        },
    )


def test_any_valid_request_is_answered_by_the_schema() -> None:
    for root, name in root_fields(SCHEMA):
        subject = GraphqlSubject(SCHEMA, root, name, "/graphql")
        for request in drawn_values(subject.valid(), 1, 20):
            answer, breach = graphql_answer(SCHEMA, request)
            assert breach is None
            document = parse(json.loads(request.body or b"")["query"])
            assert data_breaches(SCHEMA, document, json.loads(answer.body)["data"]) == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"query": "{ user { id } }"}, "is required, but it was not provided"),
        ({"query": "{"}, "Syntax Error"),
        ({"query": 1}, "It is JSON like"),
        ([], "It is JSON like"),
        ({"query": "query Q($i: ID!) { user(id: $i) { id } }"}, "Variable '$i'"),
        ({"query": "{ a }", "variables": []}, "It is JSON like"),
    ],
)
def test_what_is_wrong_is_refused(body: Any, why: str) -> None:
    status, answer = asked(body)
    assert status == 400
    assert why in answer["errors"][0]["message"]


def test_variables_and_names_are_taken() -> None:
    query = "query A { nodes(first: 1) { id } } query B($i: ID!) { user(id: $i) { id } }"
    status, answer = asked({"query": query, "variables": {"i": "1"}, "operationName": "B"})
    assert (status, answer) == (200, {"data": {"user": {"id": "1"}}})


def test_it_is_served_beside_endpoints() -> None:
    endpoint = {"method": "GET", "path": "/a", "response": {"n": "int"}}
    contracts = [AgreedContract("G", CONTENT), AgreedContract("A", endpoint)]
    mock = Mock([*contracts, AgreedContract("H", CONTENT)], 0)
    assert mock.doubled() == ["H is not served: G has /graphql"]
    assert mock.answer(WireRequest("GET", "/a")).answer.status == 200
    mocked = mock.answer(graphql_request("/graphql", "{ nodes(first: 1) { id } }"))
    assert (mocked.operation, mocked.breaches) == ("graphql", ())
    wrong = mock.answer(graphql_request("/graphql", "{ nodes { id } }"))
    assert wrong.breaches[0].rule == "graphql_request"
    by_query = WireRequest(
        "GET", "/graphql", "query=%7B%20nodes(first:1)%7Bid%7D%7D&variables=%7B%7D"
    )
    assert mock.answer(by_query).answer.status == 200
    bad = WireRequest("GET", "/graphql", "query=%7Ba%7D&variables=x")
    assert mock.answer(bad).breaches[0].where == "query variables"
