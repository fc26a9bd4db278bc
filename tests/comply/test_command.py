"""Tests of wire parsers behind a command: our own, a small right one, and mutants of it."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest

from comply.command import CommandSession, CommandTarget
from comply.files import SUITES, Case, load
from comply.result import CaseResult, Verdict
from comply.run import run_all, run_case
from comply.source import SUFFIX, read
from comply.target import SubjectUnreachable, Target
from schemas.jsont import ComplianceTest
from tests.cli.run import cacp

CASES = {case.id: case for case in map(load, sorted((SUITES / "wire").glob(f"*{SUFFIX}")))}
PARSER = Path(__file__).with_name("parser.py")


def mutation(id: str) -> str:
    """How the small parser breaks the rule of this test."""
    kind, _, value = id.partition(".")
    if kind == "status" or value == "count" or kind == "tolerance":
        return value.replace("-", "_")
    return f"{kind.upper()}:{value}"


def outcome(case: Case, line: str) -> CaseResult:
    return asyncio.run(run_case(case, CommandTarget(line), 20))


class Ours:
    """Our own command, run in this process: a new one for each test takes a second."""

    name = "cacp wire parse"
    facts: dict[str, str] = {}

    async def missing(self, test: ComplianceTest) -> None:
        return None

    def concerns(self, test: ComplianceTest) -> bool:
        return True

    async def open(self, case: Case) -> "OurRun":
        return OurRun([])

    async def learn(self) -> None: ...

    async def clean(self) -> list[str]:
        return []

    async def close(self) -> None: ...


class OurRun(CommandSession):
    async def run(self, stdin: bytes) -> tuple[int, str, str]:
        done = cacp("wire", "parse", "-", "--json", stdin=stdin)
        return done.exit_code, done.stdout, done.stderr


def failures(target: Target) -> dict[str, str]:
    async def whole() -> list[CaseResult]:
        await target.learn()
        return await run_all(
            list(CASES.values()), target, jobs=2, seconds=60, done=lambda result: None
        )

    done = asyncio.run(whole())
    return {one.key: one.reason for one in done if one.verdict is not Verdict.PASS}


def test_our_parser_and_a_small_one_keep_every_rule() -> None:
    assert failures(Ours()) == {}
    assert failures(CommandTarget(shlex.join([sys.executable, str(PARSER)]))) == {}


def test_our_command_is_run_as_it_is_for_users() -> None:
    ours = shlex.join([sys.executable, "-m", "cli.main", "wire", "parse", "-", "--json"])
    for id in ("status.needs-decision", "status.unknown"):
        assert outcome(CASES[id], ours).verdict is Verdict.PASS


@pytest.mark.parametrize("id", CASES)
def test_a_mutant_is_found(id: str) -> None:
    result = outcome(CASES[id], shlex.join([sys.executable, str(PARSER), mutation(id)]))
    assert result.verdict is Verdict.FAIL


def made(steps: str, transport: str = "command") -> Case:
    text = (
        f'{{"title": "t", "severity": "required", "transport": "{transport}", "steps": [{steps}]}}'
    )
    return Case("t", "s", Path("t.jsont"), read(text))


def test_only_the_latest_run_can_meet_an_expectation() -> None:
    run = '{"run": {"stdin": "%s"}}'
    output = '{"expect": {"messages": [{"output": {"stdout": "^one$"}}]}}'
    case = made(f"{run % 'one'}, {run % 'two'}, {output}")
    result = outcome(case, "cat")
    assert (result.verdict, result.reason) == (Verdict.FAIL, "stdout: expected ^one$, got two")


def test_what_is_not_for_a_command_is_said() -> None:
    assert outcome(made('{"send": {}}'), "cat").verdict is Verdict.ERROR
    assert outcome(made('{"send": {}}', "http"), "cat").verdict is Verdict.NA
    with pytest.raises(SubjectUnreachable, match="can't start /no/such: No such file"):
        asyncio.run(CommandTarget("/no/such").learn())


@pytest.mark.parametrize(("line", "bound"), [("yes", "20000 lines"), ("cat /dev/zero", "16 MiB")])
def test_a_flood_is_a_finding(line: str, bound: str) -> None:
    output = '{"expect": {"messages": [{"output": {"status": 0}}]}}'
    result = outcome(made(f'{{"run": {{"stdin": ""}}}}, {output}'), line)
    assert (result.verdict, result.reason) == (
        *(Verdict.FAIL,),
        f"the command wrote more than {bound}",
    )


def test_what_a_command_leaves_behind_is_not_waited_for() -> None:
    output = '{"expect": {"messages": [{"output": {"status": 0, "stdout": "^hi\\\\n$"}}]}}'
    case = made(f'{{"run": {{"stdin": ""}}}}, {output}')
    assert outcome(case, "sh -c 'sleep 600 & echo hi'").verdict is Verdict.PASS
