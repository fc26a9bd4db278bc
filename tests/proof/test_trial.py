"""A trial against a sender that answers as each test says, without a network."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from contracts.recognise import read
from proof.cases import Requests
from proof.endpoint_subject import EndpointSubject
from proof.exchange import OperationCheck, operation_checks
from proof.learned import Learned
from proof.messages import WireAnswer, WireRequest
from proof.sender import BaseUrl, Halted, NoAnswer, ProbeSender, ProviderGone
from proof.trial import SHRINK_MAX, ProbePlan, Trial

JSON = (("Content-Type", "application/json"),)
CONTENT: dict[str, Any] = {
    "method": "POST",
    "path": "/a",
    "request": {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}, "s": {"type": "string"}},
        "required": ["n"],
    },
    "responses": {"200": {"ok": "boolean"}, "400": "Wrong"},
}
GOOD = WireAnswer(200, JSON, b'{"ok": true}')
REFUSED = WireAnswer(400)


class Answers:
    """Stands for a `ProbeSender`: `answer` gives what comes back for the JSON of a body."""

    headers = ()

    def __init__(self, answer: Callable[[Any], WireAnswer]) -> None:
        self.answer = answer
        self.sent: list[WireRequest] = []

    def whole(self, request: WireRequest) -> WireRequest:
        return request

    def send(self, request: WireRequest) -> WireAnswer:
        self.sent.append(request)
        try:
            value = json.loads(request.body or b"")
        except ValueError:
            value = None
        return self.answer(value)


def honest(value: Any) -> WireAnswer:
    sound = isinstance(value, dict) and isinstance(value.get("n"), int) and value["n"] >= 0
    sound = sound and not isinstance(value["n"], bool) and isinstance(value.get("s", ""), str)
    return GOOD if sound else REFUSED


def subject_of(check: OperationCheck, plan: ProbePlan) -> EndpointSubject:
    return EndpointSubject(check, Requests(check, "", {}, plan.values), Learned([check]))


def tried(answer: Callable[[Any], WireAnswer], cases: int = 100, **plan: Any) -> Trial:
    (check,) = operation_checks(read(plan.pop("content", CONTENT)))
    how = ProbePlan(cases, plan.pop("seed", 1), **plan)
    sender: Any = Answers(answer)
    trial = Trial(subject_of(check, how), sender, how, lambda *_: None)
    trial.run()
    return trial


def kinds(trial: Trial) -> set[tuple[str, str]]:
    return {(failure.rule, failure.why.partition(":")[0]) for failure in trial.failures("http://h")}


def test_cases_are_as_many_as_asked_for() -> None:
    trial = tried(honest)
    assert (trial.tally.valid, trial.tally.invalid) == (60, 40)
    assert trial.tally.succeeded == 60
    assert trial.failures("http://h") == []
    assert trial.unproven() == []


def test_each_failure_is_found_and_made_small() -> None:
    def answer(value: Any) -> WireAnswer:
        if honest(value) is REFUSED:
            return REFUSED
        if value["n"] > 1000:
            return WireAnswer(500)
        if len(value.get("s", "")) > 2:
            return WireAnswer(200, JSON, b'{"ok": "yes"}')
        return GOOD

    trial = tried(answer)
    assert kinds(trial) == {("server_error", "status"), ("body_schema", "body/ok")}
    small = {failure.rule: failure.reproduce for failure in trial.failures("http://h")}
    assert '{"n": 1001}' in small["server_error"]
    assert '{"n": 0, "s": "000"}' in small["body_schema"]


def test_one_failure_does_not_hide_another() -> None:
    """A provider that always breaks one rule is still tried for others."""

    def answer(value: Any) -> WireAnswer:
        if honest(value) is REFUSED:
            return REFUSED
        text = b'{"ok": 1}' if value["n"] % 2 else b'{"ok": true}'
        return (
            WireAnswer(200, (("Content-Type", "text/html"),), text)
            if value["n"] < 9
            else (WireAnswer(200, JSON, text))
        )

    assert kinds(tried(answer)) == {
        ("media_type", "header Content-Type"),
        ("body_schema", "body/ok"),
    }


def test_what_is_wrong_must_be_refused() -> None:
    trial = tried(lambda value: GOOD if isinstance(value, dict) else REFUSED)
    assert ("accepts_body_schema", "body/n") in kinds(trial)
    assert ("accepts_body_schema", "body") in kinds(trial)
    crash = tried(lambda value: GOOD if honest(value) is GOOD else WireAnswer(502))
    assert {rule for rule, _ in kinds(crash)} == {"server_error"}


def test_a_declared_error_is_no_failure_but_no_success_either() -> None:
    trial = tried(lambda _: REFUSED)
    assert trial.failures("http://h") == []
    (line,) = trial.unproven()
    assert line.startswith("POST /a: none of 60 valid requests was answered with success, 60 with")
    content = CONTENT | {"responses": {"500": {"ok": "boolean"}}}
    broken = tried(lambda _: WireAnswer(500, JSON, b'{"ok": true}'), content=content)
    assert {rule for rule, _ in kinds(broken)} == set()


@pytest.mark.parametrize(("may_sign_in", "rules"), [(False, set()), (True, {"undeclared_status"})])
def test_a_refusal_of_credentials_counts_if_there_were_any(
    may_sign_in: bool, rules: set[str]
) -> None:
    trial = tried(lambda _: WireAnswer(401), may_sign_in=may_sign_in)
    assert {rule for rule, _ in kinds(trial)} == rules
    if not may_sign_in:
        assert trial.unproven()[0].endswith("60 with 401: send credentials (--header).")


def test_credentials_that_nobody_agreed_on_are_not_asked_for_after_a_success() -> None:
    answers = iter([GOOD])
    trial = tried(lambda _: next(answers, WireAnswer(401)))
    assert ("undeclared_status", "status") in kinds(trial)


def test_one_success_does_not_prove_the_rest() -> None:
    """Half of the valid requests have success, but for those of an id that nobody knows."""
    answers = iter([GOOD])
    trial = tried(lambda _: next(answers, REFUSED))
    assert trial.failures("http://h") == []
    assert trial.unproven() == [
        "POST /a: only 1 of 60 valid requests was answered with success, 59 with 400: the contract "
        "must say what is valid, or prepare what is needed (--before)."
    ]
    numbers = iter(range(1000))
    half = tried(lambda value: REFUSED if next(numbers) % 2 else honest(value))
    assert half.unproven() == []
    responses = CONTENT["responses"] | {"404": "None", "429": "Later"}
    content = CONTENT | {"path": "/a/{id}", "responses": responses}
    answers = iter([GOOD])
    unknown = tried(lambda _: next(answers, WireAnswer(404)), content=content)
    assert unknown.unproven() == []
    answers = iter([GOOD])
    busy = tried(lambda _: next(answers, WireAnswer(429)), content=content)
    assert busy.unproven()[0].endswith("with 429 or 503: send more slowly (--rate).")


def test_few_cases_break_each_constraint_too() -> None:
    few = tried(honest, cases=1)
    assert (few.tally.valid > 1, few.tally.invalid > 10, few.unproven()) == (True, True, [])


def test_a_provider_that_changes_its_mind_is_told_of() -> None:
    numbers = iter(range(10_000))
    trial = tried(lambda value: GOOD if next(numbers) % 7 else WireAnswer(500))
    assert ("server_error", "status") in kinds(trial)


def test_making_small_has_an_end() -> None:
    def answer(value: Any) -> WireAnswer:
        if honest(value) is REFUSED:
            return REFUSED
        return GOOD if len(str(value)) < 15 else WireAnswer(500)

    trial = tried(answer, cases=20)
    assert trial.tally.valid + trial.tally.invalid < 20 + 10 * SHRINK_MAX
    assert ("server_error", "status") in kinds(trial)


def test_no_answer_is_a_failure() -> None:
    def answer(value: Any) -> WireAnswer:
        if isinstance(value, dict) and value.get("n") == 0:
            raise NoAnswer("timeout", "There was no answer in time.")
        return honest(value)

    (failure,) = tried(answer).failures("http://h")
    assert (failure.rule, failure.why) == ("timeout", "There was no answer in time.")


def test_the_request_after_which_the_provider_ended_is_told() -> None:
    (check,) = operation_checks(read(CONTENT))
    answers = iter([GOOD])

    def answer(_: Any) -> WireAnswer:
        for kept in answers:
            return kept
        raise ProviderGone("no_answer", "refused")

    sender: Any = Answers(answer)
    how = ProbePlan(10, 1)
    trial = Trial(subject_of(check, how), sender, how, lambda *_: None)
    with pytest.raises(Halted, match="the provider ended"):
        trial.run()
    (failure,) = trial.failures("http://h")
    assert failure.rule == "provider_gone"


def test_credentials_are_not_shown() -> None:
    content = CONTENT | {"headers": {"X-Key": "string"}}
    trial = tried(lambda _: WireAnswer(500), content=content, hidden=("x-key",))
    assert all('-H "X-Key: $X_KEY"' in f.reproduce for f in trial.failures("http://h")[:1])


def test_an_answer_that_asks_to_wait_is_no_refusal() -> None:
    numbers = iter(range(10_000))
    trial = tried(lambda value: GOOD if next(numbers) < 60 else WireAnswer(429))
    assert trial.tally.invalid == 0
    assert trial.failures("http://h") == []
    (line,) = trial.unproven()
    assert line.endswith(
        "invalid requests were answered with 429 or 503: send more slowly (--rate)."
    )
    # Nor is it one of an error that the contract names.
    numbers = iter(range(10_000))
    named = CONTENT | {"responses": {**CONTENT["responses"], "503": "Busy"}}
    trial = tried(lambda _: GOOD if next(numbers) < 60 else WireAnswer(503), content=named)
    assert (trial.tally.invalid, trial.failures("http://h")) == (0, [])
    assert trial.unproven() != []
    trial = tried(lambda value: GOOD if honest(value) is GOOD else WireAnswer(503))
    assert {rule for rule, _ in kinds(trial)} == {"server_error"}
    # Some of them are left out.
    numbers = iter(range(10_000))
    trial = tried(lambda value: honest(value) if next(numbers) % 5 else WireAnswer(429))
    assert (trial.failures("http://h"), trial.unproven()) == ([], [])


SECURED: dict[str, Any] = {
    "openapi": "3.1.0",
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "paths": {
        "/a": {
            "get": {
                "security": [{"key": []}],
                "responses": {"200": {"description": ""}, "401": {"description": ""}},
            }
        }
    },
}


@pytest.mark.parametrize("is_checked", [True, False])
def test_what_asks_for_credentials_is_tried_without(is_checked: bool) -> None:
    (check,) = operation_checks(read(SECURED))
    how = ProbePlan(10, 1, may_sign_in=True, hidden=("x-key",))

    class Keyed(ProbeSender):
        def _answered(self, request: WireRequest) -> WireAnswer:
            is_known = ("X-Key", "secret") in request.headers or not is_checked
            return WireAnswer(200 if is_known else 401)

    url = BaseUrl("http://127.0.0.1:1")
    headers = (("X-Team", "blue"), ("X-Key", "secret"))
    with Keyed(url, headers, rate=0, seconds=60, timeout=1, allow_mock=False) as sender:
        trial = Trial(subject_of(check, how), sender, how, lambda *_: None)
        trial.run()
    failures = trial.failures("http://h")
    assert trial.tally.succeeded == trial.tally.valid
    if is_checked:
        assert failures == []
    else:
        (failure,) = failures
        assert failure.rule == "accepts_without_credentials"
        assert failure.reproduce == "curl -X GET -H 'X-Team: blue' http://h/a"
