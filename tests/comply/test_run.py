"""The runner's steps and verdicts (acpcomply, Test Model)."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from comply.files import Case
from comply.result import Result, Verdict
from comply.run import run_all, run_case
from comply.source import read
from tests.comply.targets import Scripted


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
            [say({"id": 1, "error": {"code": -1}}), expect({"response": OK}, ms=60_000)],
            "required",
            Verdict.FAIL,
            "result: expected {}, is missing",
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


def test_tests_run_at_the_same_time_and_keep_their_order() -> None:
    def case(number: int) -> Case:
        text = '{"title": "t", "severity": "required", "steps": [{"delayMs": 500}]}'
        return Case(str(number), "s", Path("t.jsont"), read(text))

    began = time.monotonic()
    cases = [case(number) for number in range(8)]
    ended: list[str] = []
    results = asyncio.run(
        run_all(cases, Scripted(), jobs=8, seconds=5, done=lambda one: ended.append(one.case.id))
    )
    assert [one.case.id for one in results] == [case.id for case in cases]
    assert sorted(ended) == sorted(case.id for case in cases)
    assert time.monotonic() - began < 8 * 0.5, "one after the other takes at least as long"


LATER = {"error": {"code": -32005, "message": "Later", "data": {"retryAfter": 0.2}}}


def test_a_subject_that_asks_to_be_called_later_is_called_later() -> None:
    """The wait counts neither for the window nor for the test; but patience has an end."""
    steps = [say({**LATER, "id": "${turn}"}), expect({"response": {"id": "^3$"}})]
    text = json.dumps({"title": "t", "severity": "required", "steps": steps})
    case = Case("t", "s", Path("t.jsont"), read(text))
    patient = asyncio.run(run_case(case, Scripted(), 0.3, patience=1))
    assert (patient.verdict, patient.reason) == (Verdict.PASS, "")
    assert asyncio.run(run_case(case, Scripted(), 0.3, patience=0.3)).verdict is Verdict.FAIL
