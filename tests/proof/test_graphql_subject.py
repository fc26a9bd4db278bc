"""Fields of GraphQL, tried at a real service with planted bugs."""

import json
from typing import Any

import pytest
from graphql import build_schema

from proof.agreed import AgreedContract
from proof.cases import Unmakeable
from proof.graphql_http import validation_problem
from proof.graphql_subject import GraphqlSubject, root_fields
from proof.messages import WireAnswer
from proof.plain_values import drawn_values
from tests.proof.graphql_provider import CONTENT, SDL
from tests.proof.test_probe import probed

SCHEMA = build_schema(SDL)
CONTRACT = AgreedContract("G", CONTENT)


def test_mutations_come_first() -> None:
    assert [*root_fields(SCHEMA)] == [
        ("mutation", "makeUser"),
        ("query", "user"),
        ("query", "nodes"),
    ]


def test_valid_requests_are_valid_and_ask_for_types() -> None:
    for root, name in root_fields(SCHEMA):
        subject = GraphqlSubject(SCHEMA, root, name, "/graphql")
        for request in drawn_values(subject.valid(), 1, 20):
            text = json.loads(request.body or b"")["query"]
            assert validation_problem(SCHEMA, text) is None
            assert "__typename" in text


def test_invalid_requests_are_invalid() -> None:
    for root, name in root_fields(SCHEMA):
        strategy = GraphqlSubject(SCHEMA, root, name, "/graphql").invalid()
        assert strategy is not None
        for request, wrong in drawn_values(strategy, 1, 10):
            text = json.loads(request.body or b"")["query"]
            assert validation_problem(SCHEMA, text) == wrong.why


def test_where_nothing_can_be_wrong_there_are_no_invalid_requests() -> None:
    for sdl in ("type Query { ping: String }", "type Query { us: [U!]! } type U { id: ID! }"):
        (field,) = root_fields(schema := build_schema(sdl))
        assert GraphqlSubject(schema, *field, "/graphql").invalid() is None


@pytest.mark.parametrize(
    ("answer", "rules", "succeeds"),
    [
        ({"data": None}, ["body_schema"], False),
        ({"data": None, "errors": [{"message": "No."}]}, [], False),
        ({"data": {"ping": "a", "__typename": "Query"}}, [], True),
        ({"data": {"ping": None, "__typename": "Query"}}, ["body_schema"], True),
    ],
)
def test_data_is_null_only_beside_errors(answer: Any, rules: list[str], succeeds: bool) -> None:
    schema = build_schema("type Query { ping: String! }")
    subject = GraphqlSubject(schema, "query", "ping", "/graphql")
    (request,) = drawn_values(subject.valid(), 1, 1)
    given = WireAnswer(200, (("Content-Type", "application/json"),), json.dumps(answer).encode())
    assert [breach.rule for breach in subject.breaches(request, given)] == rules
    assert subject.is_success(given) is succeeds


def test_a_field_without_requests_is_said() -> None:
    with pytest.raises((Unmakeable, ValueError)):
        GraphqlSubject(SCHEMA, "query", "nothing", "/graphql")


@pytest.mark.parametrize("seed", range(3))
def test_an_honest_service_passes(provider: str, seed: int) -> None:
    outcome = probed(f"{provider}/of-graphql/honest/graphql", CONTRACT, seed=seed)
    assert [failure.why for failure in outcome.failures] == []
    assert outcome.result == "passed"
    assert all(tally.succeeded > 0 for tally in outcome.tallies)


@pytest.mark.parametrize(
    ("bug", "operation", "rule", "why"),
    [
        ("null_name", "query user", "body_schema", "/name: It is null; right is String!."),
        ("wrong_role", "mutation makeUser", "body_schema", "'OWNER' does not exist in 'Role' enum"),
        ("no_list", "query nodes", "body_schema", "body/data/nodes: It is no list"),
        ("missing_field", "query user", "body_schema", "It was asked for, and missing."),
        ("unchecked", "query user", "accepts_invalid", "It is answered with data, but wrong"),
        ("crash", "query user", "server_error", "It is 500, as the request is wrong"),
        ("text", "query user", "media_type", "it is text/plain"),
    ],
)
def test_a_planted_bug_is_found(
    provider: str, bug: str, operation: str, rule: str, why: str
) -> None:
    outcome = probed(f"{provider}/of-graphql/{bug}/graphql", CONTRACT)
    told = [f for f in outcome.failures if (f.operation, f.rule) == (operation, rule)]
    assert any(why in failure.why for failure in told), outcome.failures


def test_subscriptions_are_skipped(provider: str) -> None:
    sdl = SDL + "type Subscription { made: User }"
    outcome = probed(f"{provider}/of-graphql/honest/graphql", AgreedContract("G", {"graphql": sdl}))
    assert outcome.skipped == ("subscription made",)
    assert outcome.unproven == (
        "subscription made: it can't be tried this way; --allow-skipped lets the rest pass "
        "without it.",
    )
    assert outcome.result == "not_run"
    outcome = probed(
        f"{provider}/of-graphql/honest/graphql",
        AgreedContract("G", {"graphql": sdl}),
        allow_skipped=True,
    )
    assert (outcome.result, outcome.skipped) == ("passed", ("subscription made",))
