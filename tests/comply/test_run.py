"""Running tests: their results, several at a time."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from comply.files import Case
from comply.result import CaseResult, Finding, Verdict
from comply.run import hold, own_seconds, run_all, run_case
from comply.source import read
from schemas.jsont import ComplianceTest
from tests.comply.targets import Scripted, ScriptedSession, expect, outcome, say
from tests.support.waiting import PATIENCE

UPDATE = {"method": "session/update", "params": {"text": "hello"}}


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

    def weighed(verdict: Verdict, reason: str, *broken: str) -> CaseResult:
        result = CaseResult(case, verdict, reason)
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
