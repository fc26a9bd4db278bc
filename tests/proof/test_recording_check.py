from datetime import UTC, datetime, timedelta
from typing import Any

from proof.agreed import AgreedContract
from proof.messages import WireAnswer, WireRequest
from proof.recording import RecordedExchange
from proof.recording_check import RecordingCheck, check_recording
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


def test_an_empty_recording_shows_nothing() -> None:
    assert checked().exit_status == 4


def test_the_contract_counts_as_it_is_now() -> None:
    stricter = {"method": "POST", "path": "/users", "request": {"email": "string", "age": "int"}}
    check = checked(GOOD, contracts=[AgreedContract("Users", stricter)])
    (_, users) = check.outcomes[0]
    assert users.result == "failed"


def test_what_the_mock_could_not_answer_is_no_fault_of_the_consumer() -> None:
    silent = AgreedContract("Silent", {"method": "GET", "path": "/a", "responses": {}})
    check = checked(WireRequest("GET", "/a"), contracts=[silent])
    assert check.exit_status == 0
