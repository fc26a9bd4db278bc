"""Real probes of a real provider: planted bugs are found, and honest work passes."""

import shlex
import subprocess
import sys
from typing import Any

import pytest

from proof.agreed import AgreedContract
from proof.probe import base_path, probe
from proof.probe_outcome import ProbeOutcome
from proof.sender import BaseUrl, ProbeSender
from proof.trial import ProbePlan
from tests.proof.provider import CONTRACT, running

USERS = AgreedContract("Users", CONTRACT)


def probed(
    address: str,
    contract: AgreedContract = USERS,
    seed: int = 1,
    cases: int = 60,
    headers: tuple[tuple[str, str], ...] = (),
    **plan: Any,
) -> ProbeOutcome:
    url = BaseUrl(address)
    with ProbeSender(url, headers, rate=0, seconds=120, timeout=10, allow_mock=False) as sender:
        how = ProbePlan(cases, seed, may_sign_in=bool(headers), **plan)
        return probe(contract, url, sender, how, lambda *_: None)


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_provider_passes(provider: str, seed: int) -> None:
    outcome = probed(f"{provider}/honest", seed=seed)
    assert [failure.why for failure in outcome.failures] == []
    assert outcome.result == "passed"
    tallies = {tally.key: tally for tally in outcome.tallies}
    assert set(tallies) == {"POST /users", "GET /users", "GET /users/{}", "DELETE /users/{}"}
    for tally in tallies.values():
        assert tally.valid > 20
        assert tally.invalid > 10
        # What was made is asked for: an id at random is never there.
        assert tally.succeeded > 0


@pytest.mark.parametrize(
    ("bug", "operation", "rule", "why"),
    [
        ("wrong_type", "POST /users", "body_schema", "body/age: "),
        ("wrong_type", "GET /users/{}", "body_schema", "body/age: "),
        ("missing_member", "POST /users", "body_schema", '"email" is a required property'),
        ("undeclared_status", "POST /users", "undeclared_status", "It is 202; declared is 201"),
        ("error_on_edge", "POST /users", "server_error", "It is 500"),
        ("wrong_content_type", "POST /users", "media_type", "text/plain; right is application/js"),
        ("accepts_invalid", "POST /users", "accepts_body_schema", "It is accepted with 201"),
        ("accepts_malformed", "POST /users", "accepts_malformed_body", "It is no JSON"),
        ("ignores_bounds", "POST /users", "accepts_body_schema", "body/email: It is accepted"),
        ("missing_header", "GET /users", "missing", "header X-Rate-Left: It is required"),
        ("redirects_away", "GET /users", "undeclared_status", "It is 307"),
    ],
)
def test_a_planted_bug_is_found(
    provider: str, bug: str, operation: str, rule: str, why: str
) -> None:
    outcome = probed(f"{provider}/{bug}")
    assert outcome.result == "failed"
    told = {(f.operation, f.rule): f for f in outcome.failures if why in f.why}
    assert (operation, rule) in told, outcome.failures
    # The command line is for the same provider, and is run by a shell as it is.
    command = told[operation, rule].reproduce
    assert command.startswith("curl ")
    assert shlex.split(command)[-1].startswith(f"{provider}/{bug}/users")


def test_what_fails_is_made_small(provider: str) -> None:
    outcome = probed(f"{provider}/error_on_edge")
    (failure,) = outcome.failures
    assert '{"age": 0, "email": "000"}' in failure.reproduce
    words = shlex.split(
        failure.reproduce.replace("curl ", "curl -s -o /dev/null -w '%{http_code}' ")
    )
    assert subprocess.run(words, capture_output=True, text=True).stdout == "500"


def test_a_provider_that_ends_has_failed() -> None:
    with running() as address:
        outcome = probed(f"{address}/exits")
    assert {failure.rule for failure in outcome.failures} >= {"no_answer"}
    assert outcome.result == "failed"
    assert "the provider ended" in outcome.unproven[-1]


def test_where_nothing_answers_nothing_is_proven() -> None:
    with running() as address:
        pass
    outcome = probed(address)
    assert (outcome.result, outcome.cases) == ("not_run", 0)
    assert "nothing answers there" in outcome.unproven[0]


def test_the_same_seed_draws_the_same_cases(provider: str) -> None:
    outcomes = [probed(f"{provider}/accepts_invalid", seed=9) for _ in range(2)]
    # What other requests are answered follows from the users that there are.
    first, second = (
        [failure for failure in outcome.failures if failure.operation == "POST /users"]
        for outcome in outcomes
    )
    assert first == second
    assert first != []


def endpoint(provider_path: str, **content: Any) -> AgreedContract:
    return AgreedContract("One", {"method": "GET", "path": provider_path, **content})


def test_without_success_nothing_is_proven(provider: str) -> None:
    content = {"responses": {"200": {"id": "integer"}, "404": "No such user"}}
    contract = endpoint(
        "/users/{id}", pathParams={"id": {"type": "integer", "minimum": 1}}, **content
    )
    outcome = probed(f"{provider}/honest", contract, values={"id": "987654321"})
    assert outcome.result == "not_run"
    assert "with 404: name values of parameters that exist (--value)" in outcome.unproven[0]


def test_refusals_alone_prove_nothing(provider: str) -> None:
    contract = endpoint("/users", query={"limit": "string"}, responses={"400": {}, "405": {}})
    outcome = probed(f"{provider}/honest", contract, values={"limit": "no"})
    assert outcome.unproven == ("No request was answered with success.",)


def parametrised(path: str, *parameters: dict[str, Any], **operation: Any) -> AgreedContract:
    get = {"parameters": [*parameters], "responses": {"404": {"description": ""}}, **operation}
    return AgreedContract("Odd", {"openapi": "3.1.0", "paths": {path: {"get": get}}})


def header(name: str, place: str = "header") -> dict[str, Any]:
    return {"name": name, "in": place, "required": True, "schema": {"type": "string"}}


@pytest.mark.parametrize("path", ["/ключ", "/a b\r\nX: y", "/{ключ}"])
def test_a_path_is_encoded(provider: str, path: str) -> None:
    parameters = [header("ключ", "path")] if "{" in path else []
    outcome = probed(provider, parametrised(path, *parameters), cases=4)
    assert outcome.failures == ()
    assert outcome.cases > 0


@pytest.mark.parametrize("name", ["ключ", "X\r\nEvil: 1", "a b"])
@pytest.mark.parametrize("place", ["header", "cookie"])
def test_a_header_that_can_not_be_sent_is_said(provider: str, name: str, place: str) -> None:
    outcome = probed(provider, parametrised("/x", header(name, place)), cases=4)
    assert (outcome.result, outcome.cases) == ("not_run", 0)
    assert f"no {place} can have the name" in outcome.unproven[0]


def test_how_a_request_travels_is_not_drawn(provider: str) -> None:
    names = ("Host", "Content-Length", "Transfer-Encoding")
    outcome = probed(provider, parametrised("/x", *map(header, names)), cases=4)
    assert outcome.failures == ()
    assert outcome.cases > 0


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "minLength": 5 * 10**8}, "minLength is more than"),
        ({"type": "array", "minItems": 10**8}, "minItems is more than"),
        ({"type": "object", "minProperties": 10**7}, "minProperties is more than"),
        ({"type": "number", "multipleOf": 1e-300, "minimum": 1e300}, ""),
    ],
)
def test_values_that_can_not_be_made_are_said(provider: str, schema: Any, why: str) -> None:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    outcome = probed(provider, parametrised("/x", requestBody=body), cases=4)
    assert outcome.result == "not_run"
    assert why in outcome.unproven[0]


def test_what_has_no_end_is_ended_with_the_time(provider: str) -> None:
    pattern = {"type": "string", "pattern": "^(a|a)*b$", "minLength": 40}
    body = {"required": True, "content": {"application/json": {"schema": pattern}}}
    url = BaseUrl(provider)
    with ProbeSender(url, (), rate=0, seconds=1, timeout=10, allow_mock=False) as sender:
        contract = parametrised("/x", requestBody=body)
        outcome = probe(contract, url, sender, ProbePlan(100, 1), lambda *_: None)
    assert outcome.result == "not_run"


def test_a_contract_that_has_no_endpoint_is_not_proven(provider: str) -> None:
    outcome = probed(provider, AgreedContract("Model", {"email": "string"}))
    assert outcome.result == "not_run"
    assert outcome.skipped == ("model",)


def test_what_no_value_can_be_held_against_is_not_tried(provider: str) -> None:
    schemas: dict[str, Any] = {"S0": {"type": "integer"}}
    for number in range(1, 40):
        twice = {"$ref": f"#/components/schemas/S{number - 1}"}
        schemas[f"S{number}"] = {"allOf": [twice, twice]}
    ends = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S39"}}}}
    operation = {"requestBody": ends, "responses": {"200": {"description": ""}}}
    content = {
        **{name: CONTRACT[name] for name in ("openapi", "info")},
        "paths": {"/users": {"post": operation}},
        "components": {"schemas": schemas},
    }
    outcome = probed(provider, AgreedContract("Doubled", content))
    assert outcome.result == "not_run"
    assert outcome.unproven[0].startswith("POST /users: its schemas refer to so many others")


def test_requests_that_cannot_be_made_are_said(provider: str) -> None:
    upload = {
        "openapi": "3.1.0",
        "paths": {
            "/a": {
                "post": {
                    "requestBody": {"required": True, "content": {"application/xml": {}}},
                    "responses": {"200": {"description": ""}},
                }
            },
            "/b": {
                "get": {
                    "parameters": [{"name": "q", "in": "query", "schema": {"not": {}}}],
                    "responses": {"200": {"description": ""}},
                }
            },
        },
    }
    outcome = probed(provider, AgreedContract("Upload", upload))
    assert outcome.unproven == (
        "POST /a: bodies of application/xml can't be made.",
        "GET /b: no value fits the schema of q.",
    )


def test_without_a_path_of_its_own_the_address_takes_that_of_the_first_server() -> None:
    contract = AgreedContract("V1", {**CONTRACT, "servers": [{"url": "https://x.example/v1/"}]})
    assert base_path(contract, BaseUrl("http://localhost:1")) == "/v1"
    assert base_path(contract, BaseUrl("http://localhost:1/v2/")) == "/v2"
    assert base_path(USERS, BaseUrl("http://localhost:1/")) == ""


def test_a_probe_ends_with_its_time(provider: str) -> None:
    url = BaseUrl(f"{provider}/honest")
    with ProbeSender(url, (), rate=0, seconds=0, timeout=10, allow_mock=False) as sender:
        outcome = probe(USERS, url, sender, ProbePlan(100, 1), lambda *_: None)
    assert outcome.result == "not_run"
    assert "the time was over; --time-limit gives more" in outcome.unproven[0]


def test_the_node_imports_nothing_that_makes_values() -> None:
    code = (
        "import sys, server.app, cli.main\n"
        "print([name for name in ('hypothesis', 'jsonschema_rs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
