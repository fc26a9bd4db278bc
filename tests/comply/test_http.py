"""Tests over HTTP, on a real node and on mutants of it: each shipped test is proven by a pair."""

import asyncio
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from comply.files import SUITES, Case, load
from comply.http import HttpTarget
from comply.result import Result, Verdict
from comply.run import Unreachable, run_case
from comply.source import SUFFIX, read
from tests.comply.mutations import MUTATIONS
from tests.node import Node, free_port
from tests.scenarios.mesh import TOKEN
from tests.team import FRONTEND, FRONTEND_AGENT
from tests.waiting import eventually

CASES = {
    f"{path.parent.name}/{case.id}": case
    for path in sorted(SUITES.glob(f"*/*{SUFFIX}"))
    if (case := load(path)).test.transport == "http"
}
MAIL = {"acp_session_injection": True, "acp_channel_notify": True}
"""What a node has off until it is told: tests of it would be NA."""
MUTANTS = [(key, number) for key, found in MUTATIONS.items() for number in range(len(found))]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One of two nodes that know each other; this module tests each against the other."""
    with Node(tmp_path_factory.mktemp("node"), mesh_token=TOKEN, **MAIL) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def frontend_key(node: Node) -> str:
    return node.key(FRONTEND_AGENT, FRONTEND)


@pytest.fixture(scope="module")
def peer(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """The other node, of an agent and repo of its own."""
    given = {"repo": "mobile-app", "agent_id": "aid://example.com/mobile@1.0.0"}
    folder = tmp_path_factory.mktemp("peer")
    with Node(folder, mesh_token=TOKEN, peers=node.url, **given) as peer:
        for one in (node, peer):
            eventually(lambda one=one: one.get("/health").json()["peerCount"] == 1)  # type: ignore[misc]
        yield peer
        assert "Traceback" not in peer.log


@contextmanager
def mutants_of(node: Node) -> Iterator[str]:
    """The URL of a process that serves every mutant of the node."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "tests.comply.mutant", str(port), node.url]
    process = subprocess.Popen(command)

    def answers() -> bool:
        try:
            return httpx.get(url, trust_env=False).status_code > 0
        except httpx.TransportError:
            return False

    try:
        eventually(answers, 20)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def mutants(node: Node) -> Iterator[str]:
    with mutants_of(node) as url:
        yield url


@pytest.fixture(scope="module")
def peer_mutants(peer: Node) -> Iterator[str]:
    with mutants_of(peer) as url:
        yield url


def keys_for(case: Case, node: Node, peer: Node, frontend_key: str) -> dict[str, str]:
    """The keys that a test calls with: mail is limited per sender, so each test of it has new
    ones, which the peer has heard of when it needs to."""
    if case.suite != "acp-messages":
        return {"second": frontend_key}
    number = uuid.uuid4().hex[:12]

    def key(who: str) -> str:
        return node.key(f"aid://example.com/{who}-{number}@1.0.0", who, human=who == "hugo")

    callers = {step.caller for step in case.test.steps}
    given = {"first": key("ana"), "second": key("ben")}
    if "third" in callers:
        given["third"] = key("cleo")
    if "human" in callers:
        given["human"] = key("hugo")
    if any(step.to == "peer" for step in case.test.steps):
        known = "SELECT count(*) FROM homes WHERE agent = ?"
        ana = f"aid://example.com/ana-{number}"
        eventually(lambda: peer.query(known, ana) == [(1,)])
    return given


def outcome(case: Case, url: str, peer_url: str | None = None, **keys: str) -> Result:
    async def run() -> Result:
        target = HttpTarget(url, keys, peer_url)
        await target.learn()
        target.repo, target.peer_repo = "backend-api", "mobile-app"
        try:
            return await run_case(case, target, 20, patience=0)
        finally:
            await target.close()

    return asyncio.run(run())


def test_every_shipped_test_has_a_mutant() -> None:
    assert set(MUTATIONS) == set(CASES)
    assert all(MUTATIONS.values())


@pytest.mark.parametrize("key", CASES)
def test_our_node_keeps_the_rule(key: str, node: Node, peer: Node, frontend_key: str) -> None:
    keys = keys_for(CASES[key], node, peer, frontend_key)
    result = outcome(CASES[key], node.url, peer.url, **keys)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


@pytest.mark.parametrize(("key", "number"), MUTANTS)
def test_a_mutant_is_found(
    key: str,
    number: int,
    node: Node,
    peer: Node,
    mutants: str,
    peer_mutants: str,
    frontend_key: str,
) -> None:
    case = CASES[key]
    text = re.sub(r'"timeoutMs": \d{5,}', '"timeoutMs": 600', case.path.read_text())
    keys = keys_for(case, node, peer, frontend_key)
    short = Case(case.id, case.suite, case.path, read(text))
    at, peer_at = f"{mutants}/{key}/{number}", f"{peer_mutants}/{key}/{number}"
    result = outcome(short, at, peer_at, **keys)
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
        (made(LIST[:-1] + ', "as": "human"}'), Verdict.NA, "needs a human: --human-key"),
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
