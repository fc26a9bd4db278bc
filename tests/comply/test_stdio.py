"""Tests of agents over stdio: each shipped test is proven by a right agent and a mutant of it."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from comply.agent import StdioTarget
from comply.files import SUITES, Case, load
from comply.result import CaseResult, Verdict
from comply.run import run_all, run_case
from comply.settings import AgentServer
from comply.source import SUFFIX, read
from comply.target import SubjectUnreachable
from schemas.jsont import JsonObject
from tests.comply.sdk import check_messages, models
from tests.comply.windows import shortened

AGENT = Path(__file__).with_name("agent.py")
CASES = {case.id: case for case in map(load, sorted((SUITES / "acp").glob(f"*{SUFFIX}")))}


def select(id: str, *values: str) -> JsonObject:
    options: list[JsonValue] = [{"value": one, "name": one.title()} for one in values]
    chosen: JsonObject = {"currentValue": values[0], "options": options}
    return {"id": id, "name": id.title(), "type": "select", **chosen}


OFFERS: JsonObject = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "sessionCapabilities": {
        name: {} for name in ("list", "delete", "resume", "close", "additionalDirectories")
    },
    "auth": {"logout": {}},
    "authMethods": [{"id": "login", "name": "Log in"}],
    "session": {
        "sessionId": "session-1",
        "configOptions": [select("model", "small", "large"), select("effort", "low", "high")],
        "modes": {
            "currentModeId": "ask",
            "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
        },
    },
}
NEWEST_MCP = {"optional.mcp.discover"}
"""What an agent is asked that speaks the newest revision of MCP in place of an older one."""
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
    "required.content.resource-link": ["resource_link"],
    "required.capabilities.respect-boolean-disabled": ["boolean anyway"],
    "required.capabilities.respect-elicitation-disabled": ["forms anyway"],
    "required.capabilities.respect-updates-disabled": ["updates anyway"],
    "required.cancel-request.unknown": ["cancels anything"],
    "optional.authenticate": ["no login"],
    "optional.authenticate.unknown": ["any login"],
    "optional.cancel-request": ["own code"],
    "optional.config": ["fixed option"],
    "optional.config.boolean": ["unnamed option"],
    "optional.config.complete": ["one option"],
    "optional.config.unknown": ["any option"],
    "optional.elicitation": ["empty form", "wants an answer"],
    "optional.logout": ["stays in"],
    "optional.session.close": ["works on"],
    "optional.session.delete": ["keeps all"],
    "optional.session.delete.unknown": ["delete once"],
    "optional.session.directories": ["one folder"],
    "optional.session.directories.list": ["first folder"],
    "optional.session.list": ["every folder"],
    "optional.session.list.cursor": ["any cursor"],
    "optional.session.list.empty": ["every folder"],
    "optional.session.resume": ["replays"],
    "optional.session.resume.prompt": ["no way back"],
    "optional.session.resume.unknown": ["any session"],
    "optional.update.compaction": ["open compaction"],
    "optional.update.config": ["unnamed option"],
    "optional.update.notice": ["bare notice"],
    "optional.update.session-info": ["odd title"],
    "optional.update.usage": ["no room"],
    "optional.fs.read": ["relative path", "own folder"],
    "optional.fs.write": ["empty file"],
    "optional.mcp.session": ["no mcp"],
    "optional.mcp.connect": ["no name"],
    "optional.mcp.discover": ["newest, no name"],
    "optional.mcp.tool-call": ["other tool"],
    "optional.mcp.absent": ["shared server"],
    "optional.modes": ["fixed mode"],
    "optional.modes.change": ["first mode"],
    "optional.modes.unknown": ["any mode"],
    "optional.permission.allow": ["no way out"],
    "optional.permission.cancelled": ["not cancelled"],
    "optional.permission.deny": ["deaf"],
    "optional.permission.once": ["trusting"],
    "optional.plan": ["empty plan"],
    "optional.session.load": ["no replay"],
    "optional.session.load-unknown": ["any session"],
    "optional.slash-commands": ["bare command"],
    "optional.terminal": ["no release"],
    "optional.tool-call": ["open call"],
    "optional.tool-call.kind": ["own kind", "own status"],
}


def agent(*args: str) -> StdioTarget:
    return StdioTarget("agent", AgentServer(command=sys.executable, args=[str(AGENT), *args]))


def tried(*args: str) -> StdioTarget:
    """The agent, with all that an operator may allow."""
    target = agent(*args)
    target.server.authenticate, target.server.logout = "login", True
    return target


def outcome(case: Case, *args: str, seconds: float = 30) -> CaseResult:
    return asyncio.run(run_case(case, agent(*args), seconds))


def test_every_shipped_test_has_a_mutant() -> None:
    assert set(MUTANTS) == set(CASES)


def test_a_right_agent_passes_every_test_and_its_offers_are_the_reports_header() -> None:
    async def whole() -> tuple[StdioTarget, list[CaseResult]]:
        target = tried()
        await target.learn()
        cases = [case for case in CASES.values() if case.id not in NEWEST_MCP]
        done = await run_all(cases, target, jobs=4, seconds=60, done=lambda result: None)
        return target, done

    target, results = asyncio.run(whole())
    assert {one.key: one.reason for one in results if one.verdict is not Verdict.PASS} == {}
    assert target.offers == OFFERS
    assert (target.facts["Modes"], target.facts["Commands"]) == ("ask/code", "web")
    assert '"loadSession":true' in target.facts["Caps"]
    spoken = {method for one in results for method in check_messages(one.frames)}
    assert spoken == set(models()), "each is held against the SDK's model at least once"


def test_an_agent_that_speaks_the_newest_mcp_has_started_its_server() -> None:
    result = outcome(CASES["optional.mcp.discover"], "newest")
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


@pytest.mark.parametrize(
    ("id", "mutation"), [(id, one) for id, mutations in MUTANTS.items() for one in mutations]
)
def test_a_mutant_is_found(id: str, mutation: str) -> None:
    target = tried(mutation)
    target.offers = OFFERS
    result = asyncio.run(run_case(shortened(CASES[id], 400, deciding=1500), target, 30))
    assert result.verdict in (Verdict.FAIL, Verdict.PARTIAL), result.reason
    assert not (result.required and result.verdict is Verdict.PARTIAL)


def test_a_hung_agent_is_a_finding_and_leaves_no_process() -> None:
    result = outcome(CASES["required.session.new"], "hung", seconds=0.5)
    assert (result.verdict, result.reason) == (Verdict.FAIL, "the test took longer than 0.5 s")


def test_an_agent_that_ends_at_once_is_a_finding_with_its_last_words() -> None:
    result = outcome(CASES["required.initialize"], "gone")
    assert result.reason == "no response came: the agent exited with status 1"
    assert "no such model" in result.log


def test_an_agent_that_does_not_start_is_no_finding() -> None:
    target = StdioTarget("x", AgentServer(command="/no/such/agent"))
    with pytest.raises(SubjectUnreachable, match="can't start /no/such/agent: No such file"):
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


def test_a_canned_reply_may_be_a_whole_answer_and_an_error() -> None:
    def asked(reply: str) -> list[Any]:
        window = f'{{"clientRequest": {{"method": "^fs/read"}}, "reply": {reply}}}'
        turn = '{"response": {"id": 1}}'
        result = outcome(made(f'{PROMPT}, {{"expect": {{"messages": [{window}, {turn}]}}}}'))
        assert result.verdict is Verdict.PASS, result.reason
        sent = [frame.message for frame in result.frames if frame.sent]
        return [one for one in sent if isinstance(one, dict) and "method" not in one]

    (found,) = asked('{"result": {"content": "canned"}}')
    assert found["result"] == {"content": "canned"}
    (refused,) = asked('{"error": {"code": -32000, "message": "no"}}')
    assert (refused["error"], "result" in refused) == ({"code": -32000, "message": "no"}, False)


def test_a_terminal_that_a_test_promises_can_be_asked_about() -> None:
    """The test answers for what is created and printed; waiting and releasing is ours."""
    made_up = '{"clientRequest": {"method": "create"}, "reply": {"result": {"terminalId": "t_1"}}}'
    said = '{"output": "hello\\n", "truncated": false}'
    shown = f'{{"clientRequest": {{"method": "output"}}, "reply": {said}}}'
    turn = '{"expect": {"messages": [{"response": {"id": 1, "result": {"stopReason": "end"}}}]}}'
    window = f'{{"expect": {{"messages": [{made_up}, {shown}]}}}}'
    result = outcome(made(f"{PROMPT.replace('Read it', 'Run it')}, {window}, {turn}"))
    assert result.verdict is Verdict.PASS, result.reason


def test_the_answer_to_the_runners_own_request_can_be_expected_until_the_next_is_sent() -> None:
    opened = '{"response": {"id": "^.*$", "result": {"sessionId": "^session-1$"}}}'
    window = f'{{"expect": {{"timeoutMs": 50, "messages": [{opened}]}}}}'
    assert outcome(made(window)).verdict is Verdict.PASS
    done = '{"expect": {"messages": [{"response": {"result": {"stopReason": "end"}}}]}}'
    later = outcome(made(f"{PROMPT}, {done}, {window}"))
    assert (later.verdict, later.reason) == (Verdict.FAIL, "no response came within 50 ms")


def test_a_permission_that_a_test_cancels_is_outstanding_when_it_does() -> None:
    asked = '{"expect": {"messages": [{"clientRequest": {"method": "request_permission"}}]}}'
    cancel = (
        '{"send": {"jsonrpc": "2.0", "method": "session/cancel",'
        ' "params": {"sessionId": "${sessionId}"}}}'
    )
    ended = '{"expect": {"messages": [{"response": {"id": 1, "result": {"stopReason": "^canc"}}}]}}'
    prompt = PROMPT.replace("Read it", "Ask permission")
    result = outcome(made(f"{prompt}, {asked}, {cancel}, {ended}"))
    assert result.verdict is Verdict.PASS, result.reason


def test_capabilities_that_a_test_gives_keep_the_rest_of_ours() -> None:
    given = '"init": {"clientCapabilities": {"fs": {"readTextFile": false}, "x": {"y": 1}}},'
    wanted = {"fs": {"readTextFile": False, "writeTextFile": True}, "terminal": True, "x": {"y": 1}}
    result = outcome(made('{"delayMs": 0}', given))
    first: Any = result.frames[0].message
    assert first["params"]["clientCapabilities"] == wanted


@pytest.mark.parametrize(
    ("asked", "reply", "reason"),
    [
        ('{"method": "^fs/read"}', '{"x": "${nope}"}', "${nope} is not set"),
        ('{"method": "^${nope}"}', "1", "${nope} is not set"),
        ('{"params": {"path": "^([^.]|[a-z])+$"}}', "1", "the regex ^([^.]|[a-z])+$ takes more"),
    ],
)
def test_a_reply_that_can_not_be_made_is_an_error_of_the_test(
    asked: str, reply: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comply.patterns.SECONDS", 0.05)
    window = f'{{"clientRequest": {asked}, "reply": {reply}}}, {{"response": {{"id": 1}}}}'
    result = outcome(made(f'{PROMPT}, {{"expect": {{"messages": [{window}]}}}}'))
    assert result.verdict is Verdict.ERROR
    assert result.reason.startswith(reason)


def test_sandbox_files_that_can_not_be_written_are_an_error_of_the_test() -> None:
    files = '"sandbox": {"files": [{"path": "a", "text": ""}, {"path": "a/b", "text": ""}]},'
    result = outcome(made(PROMPT, files))
    assert result.verdict is Verdict.ERROR
    assert result.reason == "sandbox file a/b can't be written: File exists"


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


@pytest.fixture(scope="module")
def complete() -> StdioTarget:
    """An agent on the official SDK, which takes a second to import: it is asked once."""
    args = ["-m", "tests.comply.complete"]
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    target = StdioTarget("complete", AgentServer(command=sys.executable, args=args, env=env))
    asyncio.run(target.learn())
    return target


LISTED = (
    '{"send": {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}},'
    ' {"expect": {"messages": [{"response": {"id": 1, "result":'
    ' {"sessions": [{"sessionId": "^${sessionId}$"}]}}}]}}'
)


def test_a_capability_of_an_agent_on_the_sdk_may_be_an_empty_object(complete: StdioTarget) -> None:
    asked = '{"agentCap": "sessionCapabilities.list"}'
    present = made(LISTED, f'"preconditions": [{asked}],')
    assert asyncio.run(complete.missing(present.test)) is None
    absent = made(LISTED, f'"preconditions": [{asked[:-1]}, "mustBe": false}}],')
    assert asyncio.run(complete.missing(absent.test)) == "sessionCapabilities.list is offered"


def failures(target: StdioTarget, cases: list[Case]) -> dict[str, str]:
    """The tests that an agent fails, and why."""
    running = run_all(cases, target, jobs=2, seconds=60, done=lambda result: None)
    passing = (Verdict.PASS, Verdict.NA)
    return {
        result.key: result.reason
        for result in asyncio.run(running)
        if result.verdict not in passing
    }


def test_a_complete_agent_on_the_sdk_lists_its_sessions_as_the_protocol_has_it(
    complete: StdioTarget,
) -> None:
    """By folder, and with an error for a cursor that is none (Session List)."""
    listing = [case for id, case in CASES.items() if id.startswith("optional.session.list")]
    assert len(listing) == 3
    assert failures(complete, listing) == {}


@pytest.mark.soak
def test_a_complete_agent_on_the_sdk_passes_every_test_of_what_it_offers(
    complete: StdioTarget,
) -> None:
    assert failures(complete, [*CASES.values(), made(LISTED)]) == {}


@pytest.mark.soak
def test_forty_tests_of_a_fast_agent_take_less_than_twenty_seconds() -> None:
    """On two cores, with nothing else running."""

    async def whole() -> list[CaseResult]:
        target, cases = agent(), (list(CASES.values()) * 2)[:40]
        await target.learn()
        return await run_all(cases, target, jobs=4, seconds=60, done=lambda result: None)

    began = time.monotonic()
    found = asyncio.run(whole())
    assert (len(found), [one.key for one in found if one.bad]) == (40, [])
    assert time.monotonic() - began < 20
