"""The suite of the published preview, version 2: each test has a right agent and a mutant of it."""

import asyncio
import sys
from pathlib import Path

import pytest

from comply.agent import StdioTarget
from comply.files import SUITES, load
from comply.result import CaseResult, Verdict
from comply.run import run_all, run_case
from comply.settings import AgentServer
from comply.source import SUFFIX
from tests.comply.windows import shortened

AGENT = Path(__file__).with_name("agent_v2.py")
CASES = {case.id: case for case in map(load, sorted((SUITES / "acp-v2").glob(f"*{SUFFIX}")))}
MUTANTS = {
    "required.v2.initialize": ["nameless"],
    "required.v2.initialize.version": ["any version"],
    "required.v2.session.new": ["no session"],
    "required.v2.session.distinct": ["one session"],
    "required.v2.session.list": ["no list", "every folder"],
    "required.v2.session.resume": ["replays", "no snapshot"],
    "required.v2.session.resume.unknown": ["any session"],
    "required.v2.session.resume.cursor": ["any cursor"],
    "required.v2.session.replay": ["no replay"],
    "required.v2.session.close": ["works on", "not cancelled"],
    "required.v2.prompt.accepted": ["no echo", "other id"],
    "required.v2.prompt.early": ["old turns"],
    "required.v2.prompt.states": ["never running", "never idle", "no reason"],
    "required.v2.prompt.second": ["one turn"],
    "required.v2.prompt.cancel": ["not cancelled"],
    "required.v2.prompt.unknown": ["any session"],
    "required.v2.content.resource-link": ["resource_link"],
    "required.v2.error.method-not-found": ["any method"],
    "required.v2.error.invalid-params": ["internal"],
    "required.v2.error.unknown-notification": ["strict"],
    "required.v2.extension.meta": ["no meta"],
    "required.v2.stdio.framing": ["chatty"],
    "optional.v2.session.delete": ["keeps all"],
    "optional.v2.config": ["fixed option"],
    "optional.v2.config.unknown": ["any option"],
    "optional.v2.permission": ["no way out"],
    "optional.v2.permission.state": ["no action"],
    "optional.v2.permission.deny": ["deaf"],
    "optional.v2.tool-call": ["open call"],
    "optional.v2.tool-call.cancel": ["open call", "no cancel", "any call"],
    "optional.v2.tool-call.cancel.unknown": ["any call"],
    "optional.v2.elicitation": ["empty form", "wants an answer"],
    "required.v2.capabilities.respect-elicitation-disabled": ["forms anyway"],
    "optional.v2.plan": ["empty plan"],
    "optional.v2.cancel-request.unknown": ["strict"],
    "optional.v2.login": ["no login"],
    "optional.v2.login.unknown": ["any login"],
    "optional.v2.logout": ["stays in"],
}


def agent(*args: str) -> StdioTarget:
    command = [str(AGENT), *args]
    server = AgentServer(command=sys.executable, args=command, authenticate="login", logout=True)
    return StdioTarget("agent", server)


def test_every_shipped_test_has_a_mutant() -> None:
    assert set(MUTANTS) == set(CASES)


def test_a_right_agent_passes_every_test_and_those_of_version_1_are_not_for_it() -> None:
    older = load(SUITES / "acp" / "required.session.new.jsont")

    async def whole() -> tuple[StdioTarget, list[CaseResult]]:
        target = agent()
        await target.learn()
        cases = [*CASES.values(), older]
        return target, await run_all(cases, target, jobs=4, seconds=60, done=lambda one: None)

    target, results = asyncio.run(whole())
    assert (set(target.spoken), target.facts["Protocol"]) == ({2}, "2")
    assert {one.key: one.reason for one in results if one.verdict is not Verdict.PASS} == {
        "acp/required.session.new": "does not speak version 1 of the protocol"
    }


@pytest.mark.parametrize(
    ("id", "mutation"), [(id, one) for id, mutations in MUTANTS.items() for one in mutations]
)
def test_a_mutant_is_found(id: str, mutation: str) -> None:
    target = agent(mutation)
    target.preview = {
        "session": {"delete": {}},
        "authMethods": [{"methodId": "login"}],
        "opened": {"configOptions": [{}]},
    }
    result = asyncio.run(run_case(shortened(CASES[id], 400, deciding=1500), target, 30))
    assert result.verdict in (Verdict.FAIL, Verdict.PARTIAL), result.reason
    assert not (result.required and result.verdict is Verdict.PARTIAL)


def test_an_agent_of_version_1_is_none_of_version_2() -> None:
    older = StdioTarget(
        "agent",
        AgentServer(command=sys.executable, args=[str(AGENT.with_name("agent.py"))]),
    )
    asyncio.run(older.learn())
    assert (set(older.spoken), older.facts["Protocol"]) == ({1}, "1")
    assert asyncio.run(older.missing(CASES["required.v2.session.new"].test)) == (
        "does not speak version 2 of the protocol"
    )
