"""Of mutants of a complete agent, those that break a rule of the schema or of JSON-RPC are all
found, and none of the others is said to break one."""

import asyncio
import json
import random
import sys
from functools import cache
from pathlib import Path

import pytest

from comply.agent import StdioTarget
from comply.files import SUITES, Case, load
from comply.result import Verdict
from comply.run import run_case
from comply.settings import AgentServer
from comply.source import SUFFIX
from schemas.jsont import ComplianceTest
from tests.comply.changes import Mutant, mutants
from tests.comply.windows import shortened

AGENTS = {"acp": ("agent", 1), "acp-v2": ("agent_v2", 2)}
"""The complete agent for each suite, and the version that it speaks."""
WITHOUT_A_SERVER = "optional.mcp."
"""Their server takes seconds to start, and the agent says nothing new there."""
HARMLESS = 5
"""One in so many of the mutants that are run breaks nothing."""


class Willing(StdioTarget):
    """Each test is put to it: a mutant may offer nothing."""

    async def missing(self, test: ComplianceTest) -> str | None:
        return None


def target(suite: str, change: str | None = None) -> Willing:
    name, _ = AGENTS[suite]
    here = Path(__file__).parent
    args = (
        [str(here / f"{name}.py")] if change is None else [str(here / "garbled.py"), change, name]
    )
    server = AgentServer(command=sys.executable, args=args, authenticate="login", logout=True)
    return Willing(name, server)


def cases(suite: str) -> dict[str, Case]:
    every = map(load, sorted((SUITES / suite).glob(f"*{SUFFIX}")))
    return {
        case.id: shortened(case, 5_000, 5_000)
        for case in every
        if not case.id.startswith(WITHOUT_A_SERVER)
    }


async def run_mutants(suite: str, chosen: list[Mutant]) -> list[str]:
    """What was judged otherwise than it is."""
    tests, free = cases(suite), asyncio.Semaphore(4)

    async def judged(mutant: Mutant) -> str | None:
        async with free:
            subject = target(suite, str(mutant))
            result = await run_case(tests[mutant.test], subject, 20)
        right = result.verdict is Verdict.FAIL if mutant.breaks else not result.breaches
        return None if right else f"{mutant.test} {mutant}: {result.verdict} {result.reason}"

    wrong = await asyncio.gather(*(judged(mutant) for mutant in chosen))
    return [one for one in wrong if one is not None]


@cache
def generated(suite: str, only: str = "") -> list[Mutant]:
    """All mutants of what the agent says in the suite's tests, or in those whose id has `only`."""

    async def whole() -> list[Mutant]:
        subject = target(suite)
        found = [case for id, case in cases(suite).items() if only in id]
        results = [await run_case(case, subject, 60) for case in found]
        assert [one.case.id for one in results if one.breaches] == []
        return mutants({one.case.id: one.frames for one in results}, AGENTS[suite][1])

    return asyncio.run(whole())


def sample(suite: str, count: int, only: str = "") -> list[Mutant]:
    every, chance = generated(suite, only), random.Random(12)
    harmless = chance.sample([one for one in every if not one.breaks], count // HARMLESS)
    return harmless + chance.sample([one for one in every if one.breaks], count - len(harmless))


@pytest.mark.parametrize("suite", AGENTS)
def test_some_mutants_are_judged_rightly(suite: str) -> None:
    chosen = sample(suite, 10, "session.new")
    assert asyncio.run(run_mutants(suite, chosen)) == []


@pytest.mark.soak
@pytest.mark.parametrize("suite", AGENTS)
def test_two_hundred_mutants_are_judged_rightly(suite: str) -> None:
    chosen = sample(suite, 250)
    assert len([one for one in chosen if one.breaks]) == 200
    assert len({json.dumps(one.change["on"]) for one in chosen}) > 10
    assert asyncio.run(run_mutants(suite, chosen)) == []
