"""Tests of agents over stdio: each shipped test is proven by a right agent and a mutant of it."""

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from comply.files import SUITES, Case, load
from comply.record import Frame
from comply.result import Result, Verdict
from comply.run import Unreachable, run_all, run_case
from comply.settings import AgentServer
from comply.source import SUFFIX, read
from comply.stdio import PROTOCOL_VERSION, StdioTarget
from schemas.jsont import JsonObject

AGENT = Path(__file__).with_name("agent.py")
CASES = {case.id: case for case in map(load, sorted((SUITES / "acp").glob(f"*{SUFFIX}")))}
OFFERS: JsonObject = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "session": {
        "sessionId": "session-1",
        "modes": {
            "currentModeId": "ask",
            "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
        },
    },
}
MUTANTS = {
    "required.initialize": ["gone"],
    "required.initialize.version": ["any version"],
    "required.session.new": ["no session"],
    "required.session.distinct": ["one session"],
    "optional.session.unknown": ["any session"],
    "required.stdio.framing": ["chatty"],
    "required.prompt.turn": ["crash"],
    "required.prompt.updates": ["foreign update"],
    "required.prompt.second": ["one turn"],
    "required.prompt.cancel": ["not cancelled"],
    "required.prompt.after-cancel": ["stays cancelled"],
    "required.error.method-not-found": ["any method"],
    "required.error.invalid-params": ["internal"],
    "required.error.unknown-notification": ["strict"],
    "required.extension.meta": ["no meta"],
    "required.capabilities.respect-fs-disabled": ["fs anyway"],
    "required.capabilities.respect-terminal-disabled": ["terminal anyway"],
    "optional.content.audio": ["audio"],
    "optional.content.image": ["image"],
    "optional.content.resource": ["resource"],
    "optional.content.resource-link": ["resource_link"],
    "optional.fs.read": ["relative path"],
    "optional.fs.write": ["empty file"],
    "optional.mcp.session": ["no mcp"],
    "optional.mcp.connect": ["no name"],
    "optional.mcp.tool-call": ["other tool"],
    "optional.mcp.absent": ["shared server"],
    "optional.modes": ["silent mode"],
    "optional.modes.unknown": ["any mode"],
    "optional.permission.allow": ["no way out"],
    "optional.permission.cancelled": ["not cancelled"],
    "optional.permission.deny": ["deaf"],
    "optional.plan": ["empty plan"],
    "optional.session.load": ["no replay"],
    "optional.session.load-unknown": ["any session"],
    "optional.slash-commands": ["bare command"],
    "optional.terminal": ["no release"],
    "optional.tool-call": ["open call"],
    "optional.tool-call.kind": ["own kind"],
}


@cache
def models() -> dict[str, tuple[type[BaseModel], type[BaseModel] | None]]:
    """What is said on the wire, as the official SDK has it: params, and result where there is one.

    The SDK takes a second to import: only who runs these tests waits for it.
    """
    from acp import schema

    return {
        "initialize": (schema.InitializeRequest, schema.InitializeResponse),
        "session/new": (schema.NewSessionRequest, schema.NewSessionResponse),
        "session/load": (schema.LoadSessionRequest, schema.LoadSessionResponse),
        "session/set_mode": (schema.SetSessionModeRequest, schema.SetSessionModeResponse),
        "session/prompt": (schema.PromptRequest, schema.PromptResponse),
        "session/cancel": (schema.CancelNotification, None),
        "session/update": (schema.SessionNotification, None),
        "session/request_permission": (
            schema.RequestPermissionRequest,
            schema.RequestPermissionResponse,
        ),
        "fs/read_text_file": (schema.ReadTextFileRequest, schema.ReadTextFileResponse),
        "fs/write_text_file": (schema.WriteTextFileRequest, schema.WriteTextFileResponse),
        "terminal/create": (schema.CreateTerminalRequest, schema.CreateTerminalResponse),
        "terminal/output": (schema.TerminalOutputRequest, schema.TerminalOutputResponse),
        "terminal/wait_for_exit": (
            schema.WaitForTerminalExitRequest,
            schema.WaitForTerminalExitResponse,
        ),
        "terminal/release": (schema.ReleaseTerminalRequest, schema.ReleaseTerminalResponse),
    }


def agent(*args: str) -> StdioTarget:
    return StdioTarget("agent", AgentServer(command=sys.executable, args=[str(AGENT), *args]))


def outcome(case: Case, *args: str, seconds: float = 30) -> Result:
    return asyncio.run(run_case(case, agent(*args), seconds))


def test_every_shipped_test_has_a_mutant() -> None:
    assert set(MUTANTS) == set(CASES)


def test_a_right_agent_passes_every_test_and_its_offers_are_the_reports_header() -> None:
    async def whole() -> tuple[StdioTarget, list[Result]]:
        target = agent()
        await target.learn()
        cases = list(CASES.values())
        done = await run_all(cases, target, jobs=4, seconds=60, done=lambda result: None)
        return target, done

    target, results = asyncio.run(whole())
    assert {one.key: one.reason for one in results if one.verdict is not Verdict.PASS} == {}
    assert target.offers == OFFERS
    assert (target.facts["Modes"], target.facts["Commands"]) == ("ask/code", "web")
    assert '"loadSession":true' in target.facts["Caps"]
    spoken = {method for one in results for method in check_messages(one.frames)}
    assert spoken == set(models()), "each is held against the SDK's model at least once"


def check_messages(frames: list[Frame]) -> Iterator[str]:
    """Hold what both sides said against the official SDK's models; gives the methods met.

    What was refused is left out: tests send wrong messages on purpose.
    """
    results = {
        (not frame.sent, frame.message["id"]): frame.message["result"]
        for frame in frames
        if isinstance(frame.message, dict) and "result" in frame.message
    }
    for frame in frames:
        message = frame.message
        if not isinstance(message, dict) or frame.kind == "mcp":
            continue
        params, result = models().get(str(message.get("method")), (None, None))
        if params is None or (result and (frame.sent, message["id"]) not in results):
            continue
        params.model_validate(message["params"])
        if result is not None:
            result.model_validate(results[frame.sent, message["id"]] or {})
        yield str(message["method"])


def test_our_protocol_version_is_the_latest_of_the_sdk() -> None:
    from acp import PROTOCOL_VERSION as latest

    assert latest == PROTOCOL_VERSION


@pytest.mark.parametrize(
    ("id", "mutation"), [(id, one) for id, mutations in MUTANTS.items() for one in mutations]
)
def test_a_mutant_is_found(id: str, mutation: str) -> None:
    text = re.sub(r'"timeoutMs": \d{4,}', '"timeoutMs": 1500', CASES[id].path.read_text())
    target = agent(mutation)
    target.offers = OFFERS
    case = Case(id, "acp", CASES[id].path, read(text))
    result = asyncio.run(run_case(case, target, 30))
    assert result.verdict in (Verdict.FAIL, Verdict.PARTIAL), result.reason
    assert not (result.required and result.verdict is Verdict.PARTIAL)


def test_a_hung_agent_is_a_finding_and_leaves_no_process() -> None:
    result = outcome(CASES["required.session.new"], "hung", seconds=3)
    assert (result.verdict, result.reason) == (Verdict.FAIL, "the test took longer than 3 s")


def test_an_agent_that_ends_at_once_is_a_finding_with_its_last_words() -> None:
    result = outcome(CASES["required.initialize"], "gone")
    assert result.reason == "no response came: the agent exited with status 1"
    assert "no such model" in result.log


def test_an_agent_that_does_not_start_is_no_finding() -> None:
    target = StdioTarget("x", AgentServer(command="/no/such/agent"))
    with pytest.raises(Unreachable, match="can't start /no/such/agent: No such file"):
        asyncio.run(target.learn())


def test_the_runners_own_ids_are_none_that_a_test_may_have() -> None:
    result = outcome(CASES["required.error.method-not-found"])
    own = [
        str(frame.message["id"])
        for frame in result.frames
        if frame.sent and isinstance(frame.message, dict) and "id" in frame.message
    ]
    assert [id.startswith("comply-") for id in own] == [True, False]
    assert len(set(own)) == 2


def made(steps: str, more: str = "") -> Case:
    text = f'{{"title": "t", "severity": "required", {more} "steps": [{{"newSession": {{}}}}'
    return Case("t", "s", Path("t.jsont"), read(f"{text}, {steps}]}}"))


PROMPT = (
    '{"send": {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId":'
    ' "${sessionId}", "prompt": [{"type": "text", "text": "Read it"}]}}}'
)


def test_a_canned_reply_takes_the_place_of_the_provider() -> None:
    asked = '{"clientRequest": {"method": "^fs/read"}, "reply": {"content": "canned"}}'
    turn = '{"response": {"id": 1}}'
    case = made(f'{PROMPT}, {{"expect": {{"messages": [{asked}, {turn}]}}}}')
    result = outcome(case)
    assert result.verdict is Verdict.PASS, result.reason
    sent = [frame.message for frame in result.frames if frame.sent]
    assert any(isinstance(one, dict) and one.get("result") == {"content": "canned"} for one in sent)


def test_sandbox_files_are_written_as_text_and_as_bytes(tmp_path: Path) -> None:
    files = '"sandbox": {"files": [{"path": "greeting.txt", "base64": "aGk="}]},'
    turn = '{"expect": {"messages": [{"response": {"id": 1}}]}}'
    result = outcome(made(f"{PROMPT}, {turn}", files))
    sent = [frame.message for frame in result.frames if frame.sent]
    assert any(isinstance(one, dict) and one.get("result") == {"content": "hi"} for one in sent)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ('"preconditions": [{"agentCap": "mcpCapabilities.http"}],', "mcpCapabilities.http is not"),
        (
            '"preconditions": [{"cap": "client.terminal", "mustBe": false}],',
            "client.terminal is of",
        ),
        ('"transport": "http",', "is for http"),
    ],
)
def test_what_does_not_apply_is_na(more: str, reason: str) -> None:
    result = outcome(made(PROMPT, more))
    assert result.verdict is Verdict.NA
    assert result.reason.startswith(reason)


@pytest.mark.soak
def test_forty_tests_of_a_fast_agent_take_less_than_twenty_seconds() -> None:
    """On two cores, with nothing else running."""

    async def whole() -> list[Result]:
        target, cases = agent(), (list(CASES.values()) * 2)[:40]
        await target.learn()
        return await run_all(cases, target, jobs=4, seconds=60, done=lambda result: None)

    began = time.monotonic()
    assert [one.verdict for one in asyncio.run(whole())] == [Verdict.PASS] * 40
    assert time.monotonic() - began < 20
