"""The runner's steps and verdicts (acpcomply, Test Model)."""

import asyncio
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from comply.files import Case
from comply.result import Finding, Result, Verdict
from comply.run import hold, own_seconds, run_all, run_case
from comply.source import read
from schemas.jsont import ComplianceTest
from tests.comply.targets import Scripted, ScriptedSession
from tests.waiting import PATIENCE


def outcome(*steps: Any, severity: str = "required", seconds: float = 5) -> Result:
    text = json.dumps({"title": "t", "severity": severity, "steps": steps})
    case = Case("t", "s", Path("t.jsont"), read(text))
    return asyncio.run(run_case(case, Scripted(), seconds))


def say(*messages: Any, **order: Any) -> Any:
    return {"send": {"say": list(messages), **order}}


def expect(*messages: Any, ms: int = 50) -> Any:
    return {"expect": {"timeoutMs": ms, "messages": list(messages)}}


UPDATE = {"method": "session/update", "params": {"text": "hello"}}
READ = {"id": "a1", "method": "fs/read_text_file", "params": {"path": "/x"}}


def test_kinds_are_told_apart_and_extra_messages_are_ignored() -> None:
    done = outcome(
        say({"extra": 1}, UPDATE, READ, {"id": 1, "result": {"stopReason": "end_turn"}}),
        expect(
            {"clientRequest": {"method": "^fs/read"}},
            {"response": {"id": 1, "result": {"stopReason": "^end_turn$"}}},
            {"notification": {"method": "update$", "params": {"text": "^he"}}},
        ),
    )
    assert (done.verdict, done.log) == (Verdict.PASS, "bye")


def test_a_message_meets_one_expectation_only() -> None:
    one = {"notification": {"method": "update"}}
    assert outcome(say(UPDATE), expect(one, one)).verdict is Verdict.FAIL
    assert outcome(say(UPDATE), expect(one), expect(one)).verdict is Verdict.FAIL
    assert outcome(say(UPDATE, UPDATE), expect(one, one)).verdict is Verdict.PASS


def test_the_reason_is_the_nearest_miss() -> None:
    far, near = {"id": 2, "result": {}}, {"id": 1, "result": {"n": 1}}
    done = outcome(say(far, near), expect({"response": {"id": 1, "result": {"n": "^2$"}}}))
    assert done.reason == "result.n: expected ^2$, got 1"
    assert done.near is not None
    assert done.near.message == near


OK = {"id": 1, "result": {}}


def na(field: str, reason: str) -> Any:
    """A window that asks whether the test applies."""
    window = expect({"notification": {"method": "update"}})
    window["expect"][field] = reason
    return window


@pytest.mark.parametrize(
    ("steps", "severity", "verdict", "reason"),
    [
        ([expect({"response": {}})], "required", Verdict.FAIL, "no response came within 50 ms"),
        ([expect({"response": {}})], "optional", Verdict.FAIL, "no response came within 50 ms"),
        (
            [say(UPDATE), expect({"notification": {}}, {"response": {}})],
            "optional",
            Verdict.PARTIAL,
            "no response came within 50 ms",
        ),
        (
            [say(end="it exited with status 7"), expect({"response": {}}, ms=60_000)],
            "required",
            Verdict.FAIL,
            "no response came: it exited with status 7",
        ),
        (
            [say(READ), {"forbid": {"timeoutMs": 9000, "methods": ["fs/read_text_file"]}}],
            "optional",
            Verdict.FAIL,
            "sent fs/read_text_file, which it must not",
        ),
        ([{"forbid": {"timeoutMs": 20, "methods": ["x"]}}], "required", Verdict.PASS, ""),
        (
            [say("starting…"), {"forbid": {"timeoutMs": 20, "strayLines": True}}],
            "required",
            Verdict.FAIL,
            "wrote a line that is no message: starting…",
        ),
        ([na("naUnless", "no plan")], "required", Verdict.NA, "no plan"),
        ([na("naIf", "too fast")], "required", Verdict.PASS, ""),
        ([say(UPDATE), na("naIf", "too fast")], "required", Verdict.NA, "too fast"),
        (
            [say(UPDATE), na("naUnless", "no plan"), expect({"notification": {"method": "up"}})],
            "required",
            Verdict.PASS,
            "",
        ),
        (
            [say(end="gone"), na("naUnless", "no plan"), expect({"response": {}})],
            "required",
            Verdict.FAIL,
            "no response came: gone",
        ),
        (
            [
                say({"id": 1, "error": {"code": -1, "message": "no"}}),
                expect({"response": OK}, ms=60_000),
            ],
            "required",
            Verdict.FAIL,
            "result: expected {}, is missing; the answer is an error: -1 no",
        ),
        (
            [say(end="gone"), {"forbid": {"timeoutMs": 9000, "methods": ["x"]}}],
            "required",
            Verdict.FAIL,
            "the window could not be watched to its end: gone",
        ),
        (
            [say({"id": 5, "error": {"code": -1, "message": "no"}}, id=5)],
            "required",
            Verdict.FAIL,
            "request 5 is answered by an error: -1 no",
        ),
        (
            [say({"id": 5, "error": {"code": -1}}, id=5), expect({"response": {"id": 5}})],
            "required",
            Verdict.PASS,
            "",
        ),
        (
            [say(READ), say(), {"forbid": {"timeoutMs": 20, "methods": ["fs/read_text_file"]}}],
            "required",
            Verdict.PASS,
            "",
        ),
        (
            [
                say(READ, UPDATE),
                expect({"notification": {}}),
                {"forbid": {"timeoutMs": 20, "methods": ["fs/read_text_file"]}},
            ],
            "required",
            Verdict.PASS,
            "",
        ),
        (
            [
                say(UPDATE, READ),
                expect({"notification": {}}),
                {"forbid": {"timeoutMs": 9000, "methods": ["fs/read_text_file"]}},
            ],
            "required",
            Verdict.FAIL,
            "sent fs/read_text_file, which it must not",
        ),
        (
            [
                say(READ),
                {"delayMs": 0},
                {"forbid": {"timeoutMs": 20, "methods": ["fs/read_text_file"]}},
                {"forbid": {"methods": ["fs/read_text_file"], "fromStart": True}},
            ],
            "required",
            Verdict.FAIL,
            "sent fs/read_text_file, which it must not",
        ),
        (
            [say(UPDATE, id=7)],
            "required",
            Verdict.FAIL,
            "request 7 is never answered: the test is over",
        ),
        (
            [say({"id": "7", "result": {}}, id=7), expect({"response": {"id": 7}})],
            "required",
            Verdict.FAIL,
            "request 7 is never answered: the test is over",
        ),
        (
            [say(id=7, end="it exited with status 7")],
            "required",
            Verdict.FAIL,
            "request 7 is never answered: it exited with status 7",
        ),
        (
            [say(id=7, expectError=True)],
            "required",
            Verdict.FAIL,
            "request 7 is never answered: the test is over",
        ),
        ([say(UPDATE, id=None)], "required", Verdict.PASS, ""),
        ([say(hang=1)], "required", Verdict.FAIL, "the test took longer than 0.3 s"),
        (
            [{"send": {"x": "${y}"}}],
            "required",
            Verdict.ERROR,
            "${y} is not set; there are a, turn",
        ),
        ([say(**{"break": "x"})], "required", Verdict.ERROR, "OSError in the harness: x"),
    ],
)
def test_verdicts(steps: list[Any], severity: str, verdict: Verdict, reason: str) -> None:
    with mock.patch("comply.run.ANSWER_SECONDS", 0.05):
        done = outcome(*steps, severity=severity, seconds=0.3)
    assert (done.verdict, done.reason) == (verdict, reason)


def test_a_request_is_repeated_until_its_answer_is_right_and_only_the_last_is_kept() -> None:
    def asked(wanted: str, ms: int) -> Result:
        window = expect({"response": {"id": 1, "result": {"turn": wanted}}}, ms=ms)
        window["expect"]["retry"] = True
        return outcome(say({"id": 1, "result": {"turn": "${turn}"}}, id=1), window)

    third = asked("^3$", 5000)
    assert (third.verdict, len(third.frames)) == (Verdict.PASS, 2)
    never = asked("^none$", 300)
    assert never.verdict is Verdict.FAIL
    assert never.reason.startswith("result.turn: expected ^none$, got ")


def test_what_is_captured_stands_for_itself_in_later_expectations() -> None:
    keep = expect({"notification": {"method": "a"}})
    keep["expect"]["captures"] = [{"path": "params.id", "var": "id"}]
    first = {"method": "a", "params": {"id": "x.*"}}
    same = expect({"notification": {"method": "b", "params": {"id": "^${id}$"}}})

    def said(id: str) -> Result:
        return outcome(say(first), keep, say({"method": "b", "params": {"id": id}}), same)

    assert said("x.*").verdict is Verdict.PASS
    assert said("xyz").verdict is Verdict.FAIL


def test_a_regex_that_takes_too_long_is_an_error_of_its_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("comply.patterns.SECONDS", 0.05)
    slow = expect({"notification": {"method": "^(a|aa)+$"}})
    done = outcome(say({"method": "a" * 5000 + "!"}), slow)
    assert done.verdict is Verdict.ERROR
    assert done.reason.startswith("the regex ^(a|aa)+$ takes more than 0.05 s on 5001 characters")


def test_a_file_that_is_no_test_is_not_run() -> None:
    test = read('{"title": "t", "severity": "required", "steps": [{"delayMs": 1}]}')
    case = Case("t", "s", Path("t.jsont"), test, "t.jsont:1: not JSON")
    done = asyncio.run(run_case(case, Scripted(), 5))
    assert (done.verdict, done.reason, done.frames) == (Verdict.ERROR, "t.jsont:1: not JSON", [])


def test_tests_run_at_the_same_time_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits until all do: one after the other they would never end."""
    met = asyncio.Barrier(8)

    async def wait_for_all(seconds: float) -> None:
        await met.wait()

    def case(number: int) -> Case:
        text = '{"title": "t", "severity": "required", "steps": [{"delayMs": 500}]}'
        return Case(str(number), "s", Path("t.jsont"), read(text))

    monkeypatch.setattr("comply.run.asyncio.sleep", wait_for_all)
    cases = [case(number) for number in range(8)]
    ended: list[str] = []
    results = asyncio.run(
        run_all(
            cases, Scripted(), jobs=8, seconds=PATIENCE, done=lambda one: ended.append(one.case.id)
        )
    )
    assert [one.case.id for one in results] == [case.id for case in cases]
    assert sorted(ended) == sorted(case.id for case in cases)
    assert {one.verdict for one in results} == {Verdict.PASS}


LATER = {"error": {"code": -32005, "message": "Later", "data": {"retryAfter": 0.2}}}


def test_a_subject_that_asks_to_be_called_later_is_called_later() -> None:
    """The wait counts neither for the window nor for the test; but patience has an end."""
    steps = [say({**LATER, "id": "${turn}"}), expect({"response": {"id": "^3$"}})]
    text = json.dumps({"title": "t", "severity": "required", "steps": steps})
    case = Case("t", "s", Path("t.jsont"), read(text))
    patient = asyncio.run(run_case(case, Scripted(), PATIENCE, patience=PATIENCE))
    assert (patient.verdict, patient.reason) == (Verdict.PASS, "")
    assert asyncio.run(run_case(case, Scripted(), 0.3, patience=0.3)).verdict is Verdict.FAIL


def test_a_tests_own_windows_and_delays_are_no_time_that_it_takes_too_much() -> None:
    forbid = {"forbid": {"timeoutMs": 300, "methods": ["x"]}}
    text = json.dumps({"title": "t", "severity": "required", "steps": [{"delayMs": 200}, forbid]})
    assert own_seconds(read(text)) == pytest.approx(0.5)
    late = outcome(say(hang=1), forbid, seconds=0.1)
    assert late.reason == "the test took longer than 0.4 s"


class Unclosing(Scripted):
    async def open(self, case: Case) -> ScriptedSession:
        session = ScriptedSession()

        async def close() -> str:
            raise OSError("it will not end")

        session.close = close  # type: ignore[method-assign]
        return session


def test_a_session_that_cant_be_closed_keeps_its_result() -> None:
    text = json.dumps({"title": "t", "severity": "required", "steps": [say(UPDATE)]})
    case = Case("t", "s", Path("t.jsont"), read(text))
    result = asyncio.run(run_case(case, Unclosing(), 5))
    assert (result.verdict, result.reason) == (
        *(Verdict.ERROR,),
        "OSError in the harness: it will not end",
    )
    assert len(result.frames) == 2


def test_what_a_target_knows_by_now_needs_no_session() -> None:
    class Known(Scripted):
        async def missing(self, test: ComplianceTest) -> str | None:
            raise Finding("it never answers", log="last words")

        async def open(self, case: Case) -> ScriptedSession:
            raise AssertionError

    text = json.dumps({"title": "t", "severity": "required", "steps": [say(UPDATE)]})
    result = asyncio.run(run_case(Case("t", "s", Path("t.jsont"), read(text)), Known(), 5))
    assert (result.verdict, result.reason, result.log) == (
        *(Verdict.FAIL, "it never answers"),
        "last words",
    )


def test_too_many_messages_are_a_finding_and_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comply.record.MAX_MESSAGES", 50)
    done = outcome(say(*[UPDATE] * 100), {"forbid": {"timeoutMs": 60_000, "methods": ["x"]}})
    assert (done.verdict, done.reason) == (Verdict.FAIL, "more than 50 messages came")
    assert len(done.frames) == 50


def test_a_message_that_breaks_the_protocol_fails_whatever_test_it_comes_in() -> None:
    text = json.dumps({"title": "t", "severity": "optional", "steps": [{"delayMs": 0}]})
    case = Case("t", "s", Path("t.jsont"), read(text))

    def weighed(verdict: Verdict, reason: str, *broken: str) -> Result:
        result = Result(case, verdict, reason)
        result.breaches = list(broken)
        hold(result)
        return result

    def said(*given: Any) -> tuple[Verdict, str, bool]:
        result = weighed(*given)
        return result.verdict, result.reason, result.required

    assert said(Verdict.PASS, "") == (Verdict.PASS, "", False)
    assert said(Verdict.PASS, "", "a") == (Verdict.FAIL, "a", True)
    assert said(Verdict.NA, "no plan", "a", "b") == (Verdict.FAIL, "a (and 1 more)", True)
    assert said(Verdict.PARTIAL, "late", "a") == (Verdict.FAIL, "late; besides, a", True)
    assert said(Verdict.ERROR, "ours", "a") == (Verdict.ERROR, "ours", True)


def test_a_message_may_be_forbidden_after_a_step_and_one_expected_to_be_fresh() -> None:
    update = {"notification": {"method": "update"}}

    def fresh() -> Any:
        window = expect(update)
        window["expect"]["fresh"] = True
        return window

    forbid = {"forbid": {"timeoutMs": 0, "messages": [update]}}
    assert outcome(say(UPDATE), forbid).reason.startswith("said what it must not: {")
    assert outcome(say(UPDATE), say(OK), forbid).verdict is Verdict.PASS
    assert outcome(say(OK), say(UPDATE), fresh()).verdict is Verdict.PASS
    assert outcome(say(UPDATE), say(OK), fresh()).verdict is Verdict.FAIL


def test_a_test_is_na_when_what_it_is_about_has_not_what_it_needs() -> None:
    window = expect({"response": {"id": 1}})
    capture = {"path": "result.modes.1.id", "var": "second"}
    window["expect"] |= {"naUnless": "has one mode only", "captures": [capture]}

    def said(*modes: str) -> Result:
        answer = {"id": 1, "result": {"modes": [{"id": one} for one in modes]}}
        return outcome(say(answer), window, say({"id": "${second}", "result": 1}))

    one, two = said("a"), said("a", "b")
    assert (one.verdict, one.reason) == (Verdict.NA, "has one mode only")
    assert two.verdict is Verdict.PASS
