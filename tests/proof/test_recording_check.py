from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.messages import Headers, WireAnswer, WireRequest
from proof.mock import Mock
from proof.recording import RecordedExchange, Recorder, recorded
from proof.recording_check import RecordingCheck, check_recording, unused
from tests.proof.provider import CONTRACT

JSON = (("Host", "mock"), ("Content-Type", "application/json"), ("Content-Length", "9"))
USERS = AgreedContract("Users", CONTRACT)
PETS = AgreedContract("Pets", {"method": "GET", "path": "/pets", "response": {"name": "string"}})


START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def checked(*requests: WireRequest, contracts: Any = (USERS, PETS)) -> RecordingCheck:
    """A recording with a request each second, of the first contract's mock."""
    exchanges = [
        RecordedExchange(
            request, WireAnswer(200), START + timedelta(seconds=n), contracts[0].digest
        )
        for n, request in enumerate(requests)
    ]
    return check_recording(list(contracts), exchanges, START + timedelta(days=1))


GOOD = WireRequest("POST", "/users", "", JSON, b'{"email": "ana"}')
BAD = WireRequest("POST", "/users", "", JSON, b'{"mail": "ana"}')


def test_what_keeps_the_contract_passes() -> None:
    check = checked(GOOD, GOOD, WireRequest("GET", "/users"))
    (_, users), (_, pets) = check.outcomes
    assert (users.result, users.cases, users.seed) == ("passed", 3, None)
    assert [(tally.key, tally.valid) for tally in users.tallies] == [
        ("POST /users", 2),
        ("GET /users", 1),
    ]
    # The consumer doesn't use it: of that nothing is shown.
    assert pets.result == "not_run"
    assert pets.unproven == ("The recording has no request to Pets.",)
    assert check.exit_status == 0


def test_what_breaks_it_fails_once_for_each_cause() -> None:
    check = checked(GOOD, BAD, BAD)
    (_, users), _ = check.outcomes
    assert [(failure.operation, failure.rule) for failure in users.failures] == [
        ("POST /users", "body_schema")
    ]
    assert "Additional properties are not allowed" in users.failures[0].why
    assert users.failures[0].reproduce == (
        "curl -X POST -H 'Content-Type: application/json' --data-raw '{\"mail\": \"ana\"}' "
        "http://localhost/users"
    )
    assert (users.tallies[0].valid, users.tallies[0].invalid) == (1, 2)
    assert check.exit_status == 1


def test_requests_in_no_contract_fail() -> None:
    check = checked(GOOD, WireRequest("GET", "/userz"), WireRequest("PATCH", "/users"))
    assert [(failure.operation, failure.rule) for failure in check.elsewhere] == [
        ("GET /userz", "unknown_path"),
        ("PATCH /users", "unknown_method"),
    ]
    assert check.exit_status == 1


def test_the_time_is_that_of_the_contracts_own_requests() -> None:
    check = checked(WireRequest("GET", "/pets"), GOOD, GOOD, WireRequest("GET", "/pets"))
    (_, users), (_, pets) = check.outcomes
    assert (users.started_at, users.duration) == ("2026-03-01T10:00:01.000000+00:00", 1_000)
    assert (pets.started_at, pets.duration) == ("2026-03-01T10:00:00.000000+00:00", 3_000)
    assert users.target == "mock"


def test_answers_by_other_content_are_told() -> None:
    assert checked(GOOD).stale == frozenset()
    assert checked(GOOD, WireRequest("GET", "/pets")).stale == {PETS.digest}


def heard(
    request: WireRequest, contract: AgreedContract, status: int = 200, **more: Any
) -> RecordingCheck:
    exchange = RecordedExchange(request, WireAnswer(status), START, contract.digest, **more)
    return check_recording([contract], [exchange], START)


@pytest.mark.parametrize("status", [100, 304, 404, 500])
def test_without_a_success_nothing_is_shown(status: int) -> None:
    check = heard(GOOD, USERS, status)
    ((_, users),) = check.outcomes
    assert (users.result, check.exit_status) == ("not_run", 4)
    assert "No recorded request to Users was answered with success" in users.unproven[0]
    ((_, failed),) = heard(BAD, USERS, status).outcomes
    assert failed.result == "failed"


def test_a_failure_counts_before_what_could_not_be_tried() -> None:
    exchanges = [
        RecordedExchange(BAD, WireAnswer(400), START, USERS.digest),
        RecordedExchange(WireRequest("GET", "/pets"), WireAnswer(404), START, PETS.digest),
    ]
    assert check_recording([USERS, PETS], exchanges, START).exit_status == 1


def test_operations_that_are_not_used_are_named() -> None:
    check = checked(GOOD)
    (_, users), (_, pets) = check.outcomes
    assert unused(USERS, users) == ["GET /users/{}", "DELETE /users/{}", "GET /users"]
    assert unused(PETS, pets) == ["GET /pets"]
    graphql = AgreedContract("G", {"graphql": "type Query { a: Int }"})
    query = WireRequest("POST", "/graphql", "", JSON, b'{"query": "{ a }"}')
    ((_, outcome),) = heard(query, graphql).outcomes
    assert (outcome.result, unused(graphql, outcome)) == ("passed", [])


def guarded(place: str, name: str) -> AgreedContract:
    """A contract with an API key, which is a parameter too, of eight digits."""
    key = {
        "in": place,
        "name": name,
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]{8}$"},
    }
    operations = {"get": {"parameters": [key], "responses": {"200": {"description": ""}}}}
    content = {
        "openapi": "3.1.0",
        "info": {"title": "Guarded", "version": "1"},
        "paths": {"/a": operations},
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": place, "name": name}}},
    }
    return AgreedContract("Guarded", content)


@pytest.mark.parametrize(
    ("place", "name", "query", "headers"),
    [
        ("query", "kiosk", "kiosk={}", ()),
        ("header", "X-Kiosk", "", (("x-kiosk", "{}"),)),
        ("cookie", "sid", "", (("Cookie", "a=b; sid={}"),)),
    ],
)
def test_a_hidden_value_is_as_it_was_found_when_it_was_recorded(
    tmp_path: Path, place: str, name: str, query: str, headers: Headers
) -> None:
    contract = guarded(place, name)
    mock = Mock([contract], 0)
    results = []
    for number, value in enumerate(("12345678", "s3cret")):
        sent = tuple((header, text.format(value)) for header, text in headers)
        request = WireRequest("GET", "/a", query.format(value), sent)
        recorder = Recorder(tmp_path / str(number), [contract])
        recorder.add(request, mock.answer(request))
        recorder.close()
        assert value not in (tmp_path / str(number)).read_text()
        check = check_recording([contract], recorded(tmp_path / str(number)), START)
        results.append(check.outcomes[0][1])
    assert [outcome.result for outcome in results] == ["passed", "failed"]
    (failure,) = results[1].failures
    assert (failure.rule, failure.why.startswith(f"{place} {name}")) == (f"{place}_schema", True)
    # One that is missing is seen as ever.
    bare = heard(WireRequest("GET", "/a"), contract, 401)
    assert bare.outcomes[0][1].failures[0].rule == "credentials"


def test_a_body_that_was_not_read_fails() -> None:
    refused = RuleBreach("oversized", "body", "It is larger than 10 MiB.")
    bare = WireRequest("POST", "/users", "", JSON)
    exchange = RecordedExchange(bare, WireAnswer(413), START, None, None, (refused,))
    check = check_recording([USERS], [exchange], START)
    assert [failure.rule for failure in check.outcomes[0][1].failures] == ["oversized"]
    assert check.stale == frozenset()


def test_what_the_mock_knew_of_completions_is_kept_once() -> None:
    exchanges = [
        RecordedExchange(GOOD, WireAnswer(200), START, USERS.digest, known)
        for known in (None, {"c": {"r": "1"}}, {"c": {"r": "1"}}, {"c": {"r": "2"}})
    ]
    check = check_recording([USERS], exchanges, START)
    assert check.completions == {USERS.digest: [None, {"c": {"r": "1"}}, {"c": {"r": "2"}}]}


def test_an_empty_recording_shows_nothing() -> None:
    assert checked().exit_status == 4


def test_the_contract_counts_as_it_is_now() -> None:
    stricter = {"method": "POST", "path": "/users", "request": {"email": "string", "age": "int"}}
    check = checked(GOOD, contracts=[AgreedContract("Users", stricter)])
    (_, users) = check.outcomes[0]
    assert users.result == "failed"


def test_what_the_mock_could_not_answer_is_no_fault_of_the_consumer() -> None:
    silent = AgreedContract("Silent", {"method": "GET", "path": "/a", "responses": {}})
    check = heard(WireRequest("GET", "/a"), silent, 501)
    ((_, outcome),) = check.outcomes
    assert (outcome.failures, outcome.result) == ((), "not_run")
