"""Tests over HTTP, on a real node and on mutants of it: each shipped test is proven by a pair."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import httpx
import pytest

from comply.files import SUITES, Case, load
from comply.http import HttpTarget
from comply.result import CaseResult, Verdict
from comply.run import run_all, run_case
from comply.source import SUFFIX, read
from comply.target import SubjectUnreachable
from tests.comply.mutant import Mutant
from tests.comply.mutations import MUTATIONS
from tests.comply.windows import shortened
from tests.support.mesh import TOKEN
from tests.support.node import AGENT, REPO, Node
from tests.support.waiting import PATIENCE, eventually

CASES = {
    f"{path.parent.name}/{case.id}": case
    for path in sorted(SUITES.glob(f"*/*{SUFFIX}"))
    if (case := load(path)).test.transport == "http"
}
MAIL = {
    "acp_session_injection": True,
    "acp_channel_notify": True,
    "acp_thread_hops": 2,
    "acp_thread_rounds": 4,
}
"""What a node has off until it is told, and limits that are in reach: tests of it would be NA."""
BILLING, SHOP = ("aid://x.y/ana@1.0.0", "billing"), ("aid://x.y/ben@1.0.0", "shop")
MUTANTS = [(key, number) for key, found in MUTATIONS.items() for number in range(len(found))]


@pytest.fixture(autouse=True)
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our clock is that of the nodes, and they answer at once."""
    monkeypatch.setattr("comply.http.SOON_SECONDS", 1.0)
    monkeypatch.setattr("comply.execution.RETRY_SECONDS", 0.02)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One of two nodes that know each other; this module tests each against the other."""
    with Node(tmp_path_factory.mktemp("node"), mesh_token=TOKEN, **MAIL) as node:
        yield node
        assert "Traceback" not in node.log


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


@pytest.fixture(scope="module")
def known(node: Node, peer: Node) -> HttpTarget:
    """What a run learns of the two nodes before its first test."""

    return learnt_of(HttpTarget(node.url, peer_url=peer.url))


def learnt_of(target: HttpTarget) -> HttpTarget:
    async def learn() -> HttpTarget:
        await target.learn()
        await target.close()
        return target

    return asyncio.run(learn())


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node without a peer: what a test writes there is signed for nobody and sent nowhere."""
    with Node(tmp_path_factory.mktemp("lone"), **MAIL) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def known_lone(lone: Node) -> HttpTarget:
    return learnt_of(HttpTarget(lone.url))


def of_two_nodes(case: Case) -> bool:
    return any(step.to == "peer" for step in case.test.steps)


def callers(case: Case, known: HttpTarget, node: Node, peer: Node) -> HttpTarget:
    """The target with the keys that a test calls with, of any agents but the node's own: mail is
    limited per sender, so each test of it has new ones, which the peer has heard of when it needs
    to. Who works on a contract with the peer's agent is the node's own, at its word."""
    if case.suite != "acp-messages":
        second = {"second": node.key(*SHOP)}
        if of_two_nodes(case):
            return replace(known, keys=second, repo2=SHOP[1])
        first = {"first": node.key(*BILLING)}
        second["sync"] = node.key(*SHOP, trust="peer")
        return replace(known, keys=first | second, repo=BILLING[1], repo2=SHOP[1])
    number = uuid.uuid4().hex[:12]

    def key(who: str) -> str:
        return node.key(f"aid://example.com/{who}-{number}@1.0.0", who, human=who == "hugo")

    named = {step.caller for step in case.test.steps}
    keys = {"first": key("ana"), "second": key("ben")}
    if "third" in named:
        keys["third"] = key("cleo")
    if "human" in named:
        keys["human"] = key("hugo")
    if of_two_nodes(case):
        heard = "SELECT count(*) FROM homes WHERE agent = ?"
        ana = f"aid://example.com/ana-{number}"
        eventually(lambda: peer.query(heard, ana) == [(1,)])
    return replace(known, keys=keys)


def outcome(case: Case, target: HttpTarget, mutant: Mutant | None = None) -> CaseResult:
    """The test's result at the target, or at a mutant of it."""

    async def run() -> CaseResult:
        client = httpx.AsyncClient(transport=mutant or Mutant(), timeout=PATIENCE)
        try:
            return await run_case(case, replace(target, client=client), 30, patience=0)
        finally:
            await client.aclose()

    return asyncio.run(run())


def test_every_shipped_test_has_a_mutant() -> None:
    assert set(MUTATIONS) == set(CASES)
    assert all(MUTATIONS.values())


@pytest.mark.parametrize("key", CASES)
def test_our_node_keeps_the_rule(key: str, known: HttpTarget, node: Node, peer: Node) -> None:
    result = outcome(CASES[key], callers(CASES[key], known, node, peer))
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


@pytest.mark.parametrize("id", ["discovery.register", "peer.announce"])
def test_the_nodes_own_agent_may_be_a_caller(id: str, known: HttpTarget, node: Node) -> None:
    """With its key or at its word; but it is no peer of its own node."""
    case, own, shop = CASES[f"cacp-2.0/{id}"], node.key(AGENT, REPO), node.key(*SHOP)
    known = replace(known, repo2=SHOP[1])
    sync = node.key(*SHOP, trust="peer")
    for keys in ({"second": shop, "sync": sync}, {"first": own, "second": shop, "sync": sync}):
        assert outcome(case, replace(known, keys=keys)).verdict is Verdict.PASS
    swapped = replace(known, keys={"first": shop, "second": own, "sync": own})
    swapped = replace(swapped, repo=SHOP[1], repo2=REPO)
    result = outcome(case, swapped)
    assert result.verdict is Verdict.NA
    assert "the node's own agent" in result.reason


@pytest.mark.parametrize(("key", "number"), MUTANTS)
def test_a_mutant_is_found(key: str, number: int, request: pytest.FixtureRequest) -> None:
    """By the rule that it breaks: where it is found, the node itself says what is expected. What
    has not come to be yet is given more time; a request that went astray is no matter of time."""
    case, mutation = CASES[key], MUTATIONS[key][number]
    names = ("known", "node", "peer") if of_two_nodes(case) else ("known_lone", "lone", "lone")
    known, node, peer = map(request.getfixturevalue, names)
    first = 400 if of_two_nodes(case) else 40
    for milliseconds in (first, 3_000, 20_000):
        mutant = Mutant(mutation)
        target = callers(case, known, node, peer)
        result = outcome(shortened(case, milliseconds), target, mutant)
        assert result.verdict in (Verdict.FAIL, Verdict.PARTIAL)
        assert result.reason
        if mutant.misled or result.near is None or mutant.is_to_blame(result.near):
            return
    raise AssertionError(f"the node itself does not say what is expected: {result.reason}")


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that others reach: nobody calls it without a key, and it calls no loopback."""
    folder = tmp_path_factory.mktemp("exposed")
    given = {"host": "0.0.0.0", "public_url": "https://node.example"}
    with Node(folder, bootstrap_key_file=folder / "key", **given) as node:
        yield node
        assert "Traceback" not in node.log


def verdicts(node: Node, suites: set[str], keys: dict[str, str | None]) -> dict[Verdict, set[str]]:
    """The reasons of a run of whole suites, by verdict."""
    cases = [case for case in CASES.values() if case.suite in suites]

    async def run() -> dict[Verdict, set[str]]:
        target = HttpTarget(node.url, keys, repo=BILLING[1], repo2=SHOP[1])
        await target.learn()
        ran = await run_all(cases, target, jobs=8, seconds=PATIENCE, done=lambda _: None)
        await target.close()
        return {
            verdict: {one.reason for one in ran if one.verdict is verdict}
            for verdict in {one.verdict for one in ran}
        }

    return asyncio.run(run())


def test_a_node_that_others_reach_keeps_the_rules_too(exposed: Node) -> None:
    keys: dict[str, str | None] = {"first": exposed.key(*BILLING), "second": exposed.key(*SHOP)}
    keys["sync"] = exposed.key(*SHOP, trust="peer")
    found = verdicts(exposed, {"cacp-2.0", "json-rpc-2.0"}, keys)
    assert found == {Verdict.PASS: {""}, Verdict.NA: {"needs a second node: --peer-url"}}


def test_who_is_not_let_in_has_tested_nothing(exposed: Node) -> None:
    every = {"cacp-2.0", "json-rpc-2.0", "acp-messages"}
    found = verdicts(exposed, every, {})
    assert found.keys() == {Verdict.PASS, Verdict.NA}
    assert "needs a key: --key" in found[Verdict.NA]
    found = verdicts(exposed, {"json-rpc-2.0"}, {"first": "cacp_sk_live_" + "x" * 32})
    assert found == {Verdict.NA: {"the key of --key is not taken"}}


def test_an_endpoint_that_is_given_is_told_to_the_node(exposed: Node) -> None:
    """It is the node's to judge: loopback is none that this one calls."""
    keys: dict[str, str | None] = {"first": exposed.key(*BILLING), "second": exposed.key(*SHOP)}
    target = HttpTarget(exposed.url, keys, repo=BILLING[1], repo2=SHOP[1])
    join = CASES["cacp-2.0/project.join"]

    async def learnt(endpoint: str | None = None, endpoint2: str | None = None) -> HttpTarget:
        given = replace(target, endpoint=endpoint, endpoint2=endpoint2)
        learning = replace(given, client=httpx.AsyncClient())
        await learning.learn()
        await learning.close()
        return learning

    assert outcome(join, asyncio.run(learnt())).verdict is Verdict.PASS
    own = asyncio.run(learnt(endpoint="https://a.invalid", endpoint2="https://b.invalid"))
    assert (own.endpoint, own.endpoint2) == ("https://a.invalid", "https://b.invalid")
    assert outcome(join, own).verdict is Verdict.PASS
    near = asyncio.run(learnt(endpoint2="http://127.0.0.1:9102"))
    assert outcome(join, near).verdict is Verdict.FAIL


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
def test_verdicts_are_kept_apart(
    case: Case, verdict: Verdict, reason: str, known: HttpTarget
) -> None:
    result = outcome(case, replace(known, peer_url=None))
    assert result.verdict is verdict
    assert result.reason.startswith(reason)


def test_a_test_for_another_transport_is_not_applicable(known: HttpTarget) -> None:
    text = '{"title": "t", "severity": "required", "steps": [{"newSession": {}}]}'
    result = outcome(Case("t", "s", SUITES / "t.jsont", read(text)), known)
    assert (result.verdict, result.reason) == (Verdict.NA, "is for stdio, not for HTTP")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://127.0.0.1:9", r"nothing answers at http://127\.0\.0\.1:9"),
        ("127.0.0.1:80", "is not a URL such as"),
        ("ftp://x", "is not a URL such as"),
    ],
)
def test_where_nothing_answers_it_is_said(url: str, problem: str) -> None:
    async def learn() -> None:
        target = HttpTarget(url)
        try:
            await target.learn()
        finally:
            await target.close()

    with pytest.raises(SubjectUnreachable, match=problem):
        asyncio.run(learn())


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"


async def beside(answer: bytes | None, work: Callable[[str], Awaitable[None]]) -> None:
    """Do `work` with the URL of a server that says so again and again, or nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD if answer else b"")
            while not await reader.read(0) and not writer.is_closing():
                writer.write(answer or b"")
                await writer.drain()
                await asyncio.sleep(0 if answer else 0.01)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server:
        await work(f"http://{host}:{port}")


def test_a_server_that_never_answers_is_not_waited_for_in_each_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("comply.http.REQUEST_SECONDS", 0.1)

    async def learn(url: str) -> None:
        target = HttpTarget(url)
        with pytest.raises(SubjectUnreachable, match=r"does not answer within 0\.1 s"):
            await target.learn()
        await target.close()

    asyncio.run(beside(None, learn))


def test_an_answer_without_an_end_is_a_finding() -> None:
    async def ask(url: str) -> None:
        target = HttpTarget(url)
        await target.learn()
        result = await run_case(made(LIST), target, PATIENCE)
        await target.close()
        assert (result.verdict, result.reason) == (
            *(Verdict.FAIL,),
            "the answer is larger than 16 MiB",
        )

    asyncio.run(beside(b" " * 65536, ask))
