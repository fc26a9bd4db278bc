"""Agents that are silent, flood, die, want a login, or leave processes behind."""

import asyncio
import sys
from pathlib import Path

import pytest

from comply.agent import StdioTarget
from comply.files import Case
from comply.report_limits import FRAMES
from comply.result import CaseResult, Verdict
from comply.run import run_all, run_case
from comply.settings import AgentServer
from comply.source import read
from comply.stdio import Unanswered
from schemas.jsont import JsontStep
from tests.support.waiting import PATIENCE, eventually, is_running

AGENT = Path(__file__).with_name("unruly.py")
PROMPT = (
    '{"send": {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId":'
    ' "${sessionId}", "prompt": [{"type": "text", "text": "Hello"}]}}}'
)
TURN = '{"expect": {"messages": [{"response": {"id": 1}}]}}'


def made(steps: str) -> Case:
    text = f'{{"title": "t", "severity": "required", "steps": [{{"newSession": {{}}}}, {steps}]}}'
    return Case("t", "s", Path("t.jsont"), read(text))


def unruly(mode: str, file: Path, start_seconds: float = PATIENCE) -> StdioTarget:
    args = [str(AGENT), mode, str(file)]
    server = AgentServer(command=sys.executable, args=args)
    return StdioTarget(mode, server, start_seconds=start_seconds)


def judged(target: StdioTarget, *cases: Case, jobs: int = 4) -> list[CaseResult]:
    async def whole() -> list[CaseResult]:
        await target.learn()
        return await run_all(
            list(cases), target, jobs=jobs, seconds=PATIENCE, done=lambda result: None
        )

    return asyncio.run(whole())


def test_an_agent_that_never_answers_is_not_waited_for_in_each_test(tmp_path: Path) -> None:
    """Only the test that initialises by itself starts it again."""
    initialises = made('{"expect": {"timeoutMs": 100, "messages": [{"response": {"id": 0}}]}}')
    raw = initialises.test.model_copy(
        update={
            "steps": [
                JsontStep(send={"id": 0, "method": "initialize"}),
                *initialises.test.steps[1:],
            ]
        }
    )
    cases = [made(PROMPT), made(PROMPT), Case("raw", "s", Path("t.jsont"), raw)]
    first, second, third = judged(unruly("silent", tmp_path / "pids", 0.2), *cases)
    assert first.verdict is second.verdict is third.verdict is Verdict.FAIL
    assert first.reason == second.reason == "initialize is not answered within 0.2 s"
    assert third.reason == "no response came within 100 ms"
    assert len((tmp_path / "pids").read_text().split()) <= 2


def test_an_agent_that_never_answers_gets_one_version_unless_asked(tmp_path: Path) -> None:
    """Nothing says that it speaks the preview; named outright, that fails for the same reason."""
    target = unruly("silent", tmp_path / "pids", 0.2)
    newer = made_of(2, '{"delayMs": 0}')
    (result,) = judged(target, newer)
    assert (target.concerns(made(PROMPT).test), target.concerns(newer.test)) == (True, False)
    assert (result.verdict, result.reason) == (
        *(Verdict.FAIL,),
        "initialize is not answered within 0.2 s",
    )


def test_what_an_agent_would_offer_that_never_answers_is_not_tested(tmp_path: Path) -> None:
    """One finding is enough: what is optional needn't be there."""
    target = unruly("silent", tmp_path / "pids", 0.2)
    optional = made(PROMPT).test.model_copy(update={"severity": "optional"})
    (result,) = judged(target, Case("t", "s", Path("t.jsont"), optional))
    assert (result.verdict, result.reason) == (
        *(Verdict.NA,),
        "initialize is not answered within 0.2 s",
    )
    assert target.facts == {"Notes": result.reason, "Protocol": "unknown"}


def test_an_agent_that_opens_no_session_is_not_waited_for_in_each_test(tmp_path: Path) -> None:
    target = unruly("silent", tmp_path / "pids")
    target.silent["session/new"] = Unanswered("session/new", " within 30 s")
    result = asyncio.run(run_case(made(PROMPT), target, PATIENCE))
    assert (result.verdict, result.reason) == (
        *(Verdict.FAIL,),
        "session/new is not answered within 30 s",
    )
    assert not (tmp_path / "pids").exists()


def made_of(version: int, steps: str, name: str = "t") -> Case:
    about = f'"title": "t", "severity": "required", "protocolVersion": {version}'
    text = f'{{{about}, "steps": [{{"newSession": {{}}}}, {steps}]}}'
    return Case(name, "s", Path("t.jsont"), read(text))


HARD = PROMPT.replace("Hello", "Think")
TURNS = {
    1: '{"expect": {"timeoutMs": 100, "messages": [{"response": {"id": 1}}]}}',
    2: '{"expect": {"timeoutMs": 100, "messages": [{"notification": {"method": "idle"}}]}}',
}


@pytest.mark.parametrize(
    ("mode", "version", "said"),
    [
        ("mute", 1, "session/prompt is never answered"),
        ("endless", 2, "session/prompt never comes to an end (idle)"),
    ],
)
def test_an_agent_that_ends_no_turn_is_not_waited_for_in_each_test(
    mode: str, version: int, said: str, tmp_path: Path
) -> None:
    """One test waits its whole window, then one plain prompt: who still says nothing never will."""
    target = unruly(mode, tmp_path / "pids")
    target.turn_seconds = 0.2
    cases = [made_of(version, f"{HARD}, {TURNS[version]}", f"t{one}") for one in range(6)]
    needless = made_of(version, '{"delayMs": 0}')
    first, *others, last = judged(target, *cases, needless, jobs=1)
    assert (first.verdict, first.reason) == (Verdict.FAIL, f"no {said_of(version)} within 100 ms")
    reason = f"{said}: not in t0, and a plain one not within 0.2 s"
    assert {(one.verdict, one.reason, len(one.frames)) for one in others} == {
        (Verdict.FAIL, reason, 0)
    }
    assert last.verdict is Verdict.PASS
    assert target.facts["Turns"] == f"{reason}; tests that need one failed without being run"


def said_of(version: int) -> str:
    return "response came" if version == 1 else "notification came"


def test_an_agent_that_leaves_some_turns_open_is_tested_on(tmp_path: Path) -> None:
    """Silent in every hard test, several at a time, it is asked plainly after each."""
    target = unruly("picky", tmp_path / "pids")
    hard = [made_of(1, f"{HARD}, {TURNS[1]}") for _ in range(6)]
    results = judged(target, *hard, made(f"{PROMPT}, {TURN}"))
    assert {one.reason for one in results[:-1]} == {"no response came within 100 ms"}
    assert results[-1].verdict is Verdict.PASS
    assert "Turns" not in target.facts


def test_the_last_words_of_an_agent_that_ended_are_kept(tmp_path: Path) -> None:
    (result,) = judged(unruly("dying", tmp_path / "pids"), made(f"{PROMPT}, {TURN}"))
    assert result.reason == "no response came: the agent exited with status 1"
    assert result.log == "Loading\nno such model\n"


@pytest.mark.parametrize(("mode", "bound"), [("flood", "2000 lines"), ("noisy", "16 MiB")])
def test_a_flood_is_a_finding_whatever_the_test_looks_for(
    mode: str, bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comply.process.OUTPUT_LINES", 2_000)
    forbid = '{"forbid": {"timeoutMs": 600000, "methods": ["x"]}}'
    (result,) = judged(unruly(mode, tmp_path / "pids"), made(f"{PROMPT}, {forbid}"))
    assert (result.verdict, result.reason) == (
        *(Verdict.FAIL,),
        f"the agent wrote more than {bound}",
    )
    assert len(result.frames) <= FRAMES + 1


def test_a_login_that_is_wanted_is_na_whatever_the_test_looks_for(tmp_path: Path) -> None:
    wanted = '{"expect": {"messages": [{"response": {"id": 1, "error": {"code": "%s"}}}]}}'
    forbid = '{"forbid": {"timeoutMs": 50, "methods": ["x"]}}'
    steps = [TURN, forbid, wanted % r"^-?\\d+$", wanted % "^-32000$"]
    cases = [made(f"{PROMPT}, {step}") for step in steps]
    logs_in = '{"send": {"jsonrpc": "2.0", "id": 0, "method": "authenticate", "expectError": true}}'
    other = wanted.replace('"messages"', '"timeoutMs": 50, "messages"') % "^-1$"
    cases.append(made(f"{logs_in}, {PROMPT}, {TURN}, {other}"))
    *others, login, after = judged(unruly("locked", tmp_path / "pids"), *cases)
    assert {(one.verdict, one.reason) for one in others} == {
        (Verdict.NA, "needs authentication: log in first")
    }
    assert login.verdict is Verdict.PASS, "a test of just this refusal"
    assert after.verdict is Verdict.FAIL, "it has logged in"


def test_the_processes_of_an_agent_end_with_it(tmp_path: Path) -> None:
    judged(unruly("parent", tmp_path / "pids"), made(PROMPT))
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) >= 6, "it is started to learn of it, and for the test"
    for pid in pids:
        eventually(lambda pid=pid: not is_running(pid))  # type: ignore[misc]
