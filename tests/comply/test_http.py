"""Tests over HTTP, on a real node and on mutants of it: each shipped test is proven by a pair."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from comply.files import SUITES, Case, load
from comply.http import HttpTarget
from comply.result import Result, Verdict
from comply.run import Unreachable, run_case
from comply.source import SUFFIX, read
from tests.comply.mutations import MUTATIONS
from tests.node import Node, free_port

CASES = {
    f"{path.parent.name}/{case.id}": case
    for path in sorted(SUITES.glob(f"*/*{SUFFIX}"))
    if (case := load(path)).test.transport == "http"
}
MUTANTS = [(key, number) for key, found in MUTATIONS.items() for number in range(len(found))]


@pytest.fixture(scope="module")
def mutants(node: Node) -> Iterator[str]:
    """The URL of a process that serves every mutant of the node."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "tests.comply.mutant", str(port), node.url]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            httpx.get(url, trust_env=False)
            break
        except httpx.TransportError:
            time.sleep(0.05)
    yield url
    process.terminate()
    process.wait()


def outcome(case: Case, url: str, key2: str | None = None) -> Result:
    async def run() -> Result:
        target = HttpTarget(url, key2=key2)
        await target.learn()
        target.repo = "backend-api"
        try:
            return await run_case(case, target, 20)
        finally:
            await target.close()

    return asyncio.run(run())


def test_every_shipped_test_has_a_mutant() -> None:
    assert set(MUTATIONS) == set(CASES)
    assert all(MUTATIONS.values())


@pytest.mark.parametrize("key", CASES)
def test_our_node_keeps_the_rule(key: str, node: Node, frontend_key: str) -> None:
    result = outcome(CASES[key], node.url, frontend_key)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


@pytest.mark.parametrize(("key", "number"), MUTANTS)
def test_a_mutant_is_found(key: str, number: int, mutants: str, frontend_key: str) -> None:
    result = outcome(CASES[key], f"{mutants}/{key}/{number}", frontend_key)
    assert result.verdict in (Verdict.FAIL, Verdict.PARTIAL)
    assert result.reason


def made(*steps: str, more: str = "") -> Case:
    text = (
        '{"title": "t", "severity": "required", "transport": "http",'
        f'{more} "steps": [{",".join(steps)}]}}'
    )
    return Case("t", "s", SUITES / "t.jsont", read(text))


LIST = '{"send": {"jsonrpc": "2.0", "id": 1, "method": "cacp/project/list"}}'
UNKNOWN = '{"send": {"jsonrpc": "2.0", "id": 1, "method": "nope" %s}}'


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        (made(LIST), Verdict.PASS, ""),
        (made(LIST[:-1] + ', "as": "second"}'), Verdict.NA, "needs another agent: --key2"),
        (made(LIST[:-1] + ', "to": "peer"}'), Verdict.NA, "needs a second node: --peer-url"),
        (
            made(LIST, more='"preconditions": [{"method": "x/y"}],'),
            Verdict.NA,
            "x/y is not offered",
        ),
        (
            made(LIST, more='"preconditions": [{"agentCap": "protocols.cacp", "mustBe": false}],'),
            Verdict.NA,
            "protocols.cacp is offered",
        ),
        (made(UNKNOWN % ', "expectError": true'), Verdict.PASS, ""),
        (made(UNKNOWN % ""), Verdict.FAIL, "request 1 is answered by an error: -32601"),
        (
            made(LIST.replace('"id": 1', '"id": 1, "expectError": true')),
            Verdict.FAIL,
            "request 1 is answered by a result where an error was expected",
        ),
        (made('{"send": {"method": "${nope}"}}'), Verdict.ERROR, "${nope} is not set"),
        (made('{"newSession": {}}'), Verdict.ERROR, "this step is not for HTTP"),
        (
            made(LIST, '{"expect": {"messages": [{"response": {"id": 2}}]}}'),
            Verdict.FAIL,
            "id: expected 2, got 1",
        ),
        (
            made(
                '{"request": {"method": "GET", "path": "/live"}}',
                '{"expect": {"messages": [{"response": {"id": 1}}]}}',
            ),
            Verdict.FAIL,
            "no response came in the answer",
        ),
        (
            made(
                LIST,
                '{"expect": {"messages": [{"response": {"id": 1}}],'
                ' "captures": [{"path": "result.x", "var": "x"}]}}',
            ),
            Verdict.FAIL,
            "no matched message has result.x",
        ),
    ],
)
def test_verdicts_are_kept_apart(case: Case, verdict: Verdict, reason: str, node: Node) -> None:
    result = outcome(case, node.url)
    assert result.verdict is verdict
    assert result.reason.startswith(reason)


def test_a_test_for_another_transport_is_not_applicable(node: Node) -> None:
    text = '{"title": "t", "severity": "required", "steps": [{"newSession": {}}]}'
    result = outcome(Case("t", "s", SUITES / "t.jsont", read(text)), node.url)
    assert (result.verdict, result.reason) == (Verdict.NA, "is for stdio, not for HTTP")


def test_where_nothing_answers_it_is_said() -> None:
    with pytest.raises(Unreachable, match=r"nothing answers at http://127\.0\.0\.1:9"):
        outcome(made(LIST), "http://127.0.0.1:9")
    for url in ("127.0.0.1:80", "ftp://x"):
        with pytest.raises(Unreachable, match="is no URL such as"):
            outcome(made(LIST), url)
