"""The steps of a test: windows, captures, verdicts (acpcomply, Test Model)."""

from typing import Any
from unittest import mock

import pytest

from comply.result import CaseResult, Verdict
from tests.comply.targets import expect, outcome, say

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
            "wrote a line that is not a message: starting…",
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
    with mock.patch("comply.execution.ANSWER_SECONDS", 0.05):
        done = outcome(*steps, severity=severity, seconds=0.3)
    assert (done.verdict, done.reason) == (verdict, reason)


def test_a_request_is_repeated_until_its_answer_is_right_and_only_the_last_is_kept() -> None:
    def asked(wanted: str, ms: int) -> CaseResult:
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

    def said(id: str) -> CaseResult:
        return outcome(say(first), keep, say({"method": "b", "params": {"id": id}}), same)

    assert said("x.*").verdict is Verdict.PASS
    assert said("xyz").verdict is Verdict.FAIL


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

    def said(*modes: str) -> CaseResult:
        answer = {"id": 1, "result": {"modes": [{"id": one} for one in modes]}}
        return outcome(say(answer), window, say({"id": "${second}", "result": 1}))

    one, two = said("a"), said("a", "b")
    assert (one.verdict, one.reason) == (Verdict.NA, "has one mode only")
    assert two.verdict is Verdict.PASS
