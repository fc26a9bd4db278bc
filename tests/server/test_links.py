"""How entities reach a peer (design §6)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any, cast

import orjson

from peers.client import Client, Refused
from peers.digest import Name
from peers.signing import SigningKey
from server.links import MADE_AT_ONCE, MeshLink, as_foreign
from server.methods.base import Node as Self
from server.outbox import Composer
from server.store.peers import Peer
from tests.double import AGENT, REPO, Double
from tests.node import Node
from tests.scenarios.mesh import eventually, holds, peers, project, propose, status


def test_a_peer_of_another_make_is_written_to_as_it_writes() -> None:
    """Design §6: no offsets, strings where we would send null, `assigned_agent`."""
    ours = {
        "updated_at": "2026-01-01T00:00:00.000000+00:00",
        "proposed_by": None,
        "content": {"default": None, "at": "2026-01-01T00:00:00+00:00"},
        "repos": [{"agent_id": "a", "agent_endpoint": None}],
        "started_at": None,
    }
    assert as_foreign(ours) == {
        "updated_at": "2026-01-01T00:00:00.000000",
        "proposed_by": "",
        "content": {"default": None, "at": "2026-01-01T00:00:00+00:00"},
        "repos": [{"agent_id": "a", "agent_endpoint": "", "assigned_agent": "a"}],
        "started_at": None,
    }


def test_a_project_that_is_unknown_is_fetched_from_who_speaks_of_it(tmp_path: Path) -> None:
    """Design §6: a sync for a project that we don't have is not lost."""
    contract = {
        "contract_id": "c1",
        "type": "custom",
        "name": "Theirs",
        "version": 1,
        "status": "proposed",
        "content": {"a": 1},
        "proposed_by": "theirs",
        "implementations": [],
        "updated_at": "2026-01-01T00:00:00",
    }
    repo = {"repo_id": "theirs", "name": REPO, "role": "m", "language": "l"}
    whole = {
        "project_id": "p1",
        "name": "Theirs",
        "repos": [repo | {"assigned_agent": AGENT}],
        "contracts": [],
        "context_history": [],
    }
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        double.projects["p1"] = whole
        told = double.send(node.url, "cacp/contract/sync", projectId="p1", contract=contract)
        assert told["result"]["status"] == "skipped"
        eventually(lambda: holds(node, "p1") and status(node, "p1", "c1") == "proposed")
        assert "Traceback" not in node.log


def test_work_with_a_peer_of_another_make_goes_both_ways(tmp_path: Path) -> None:
    """Issue: projects, contracts, responses, context, implementations."""
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        taken = double.change(node.url, shared, contract, status="agreed")
        assert taken["result"]["status"] == "updated", taken
        assert status(node, shared, contract) == "agreed"
        node.call("cacp/implementation/complete", projectId=shared, contractId=contract, files=[])

        def implemented() -> bool:
            theirs = double.contract(shared, contract)
            return bool(theirs and theirs["implementations"])

        eventually(implemented)
        node.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
        eventually(lambda: len(double.projects[shared]["context_history"]) >= 1)
        assert "Traceback" not in node.log


# --- a peer of another make that writes while it is written to ----------------------------------


def shared_by(node: Node, double: Double) -> str:
    """A project in which the peer holds its repo; nothing of it is on its way to the peer."""
    eventually(lambda: len(peers(node)) == 1)
    shared = project(node)
    own = {"name": REPO, "role": "mobile", "language": "swift"}
    node.call("cacp/project/addRepo", projectId=shared, repo=own)
    eventually(lambda: shared in double.projects)
    claimed = own | {"repo_id": "theirs", "assigned_agent": AGENT}
    double.send(node.url, "cacp/repo/sync", projectId=shared, repo=claimed)
    eventually(lambda: waiting(node) == 0)
    return shared


def waiting(node: Node) -> int:
    [peer] = peers(node)
    return int((peer["sync"] or {"backlog": -1})["backlog"])


def settled(node: Node, contract: str) -> bool:
    """Whether the peer has the contract, and nothing is on its way to it."""
    known = node.query("SELECT 1 FROM exchanged WHERE entity_id = ?", contract)
    return bool(known) and waiting(node) == 0


def test_what_a_peer_was_told_of_a_project_does_not_come_back_as_its_own_change(
    tmp_path: Path,
) -> None:
    """Its copy, read before ours replaces it, is what we said before: no later write gives way."""
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        for status_ in ("implementing", "integrating", "complete"):
            node.call("cacp/project/updateStatus", projectId=shared, status=status_)
            eventually(lambda: waiting(node) == 0)
            assert double.projects[shared]["status"] == status_
            assert node.call("cacp/project/get", projectId=shared)["status"] == status_
        double.rename(node.url, shared, status="planning")
        assert node.call("cacp/project/get", projectId=shared)["status"] == "planning"


def test_a_header_that_a_peer_changes_while_ours_is_on_its_way_ends_alike(tmp_path: Path) -> None:
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        double.meanwhile["cacp/project/sync"] = lambda: double.rename(
            node.url, shared, objective="theirs"
        )
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: waiting(node) == 0)
        ours, theirs = node.call("cacp/project/get", projectId=shared), double.projects[shared]
        for one in (ours, theirs):
            assert (one["status"], one["objective"]) == ("implementing", "theirs")
        # It knows that the peer has it all: what the peer takes back is its own doing.
        double.rename(node.url, shared, objective="o")
        assert node.call("cacp/project/get", projectId=shared)["objective"] == "o"


def test_what_a_peer_says_while_ours_is_on_its_way_stays_its_last_word(tmp_path: Path) -> None:
    """Its next step is compared with that, not with ours, which it had left behind."""
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        double.meanwhile["cacp/contract/sync"] = lambda: double.change(
            node.url, shared, contract, status="negotiating"
        )
        place = {"projectId": shared, "contractId": contract}
        node.call("cacp/contract/update", **place, content={"path": "/second"})
        eventually(lambda: waiting(node) == 0)
        assert status(node, shared, contract) == "negotiating"
        refused = double.change(node.url, shared, contract, status="proposed")
        assert refused["result"]["status"] == "updated", refused
        assert status(node, shared, contract) == "proposed"


def test_what_is_read_of_a_peer_before_it_says_it_is_nothing_new(tmp_path: Path) -> None:
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        held = double.contract(shared, contract)
        assert held is not None
        held |= {"status": "agreed", "updated_at": "2999-01-01T00:00:00"}
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: status(node, shared, contract) == "agreed")
        told = double.send(node.url, "cacp/contract/sync", projectId=shared, contract=held)
        assert told["result"] == {"status": "skipped", "reason": "nothing new"}


def test_a_contract_reaches_a_peer_whose_project_is_newer(tmp_path: Path) -> None:
    """A refused project takes nothing along: what changed with it is sent by itself."""
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        double.projects[shared]["updated_at"] = "2999-01-01T00:00:00"
        written = Event()
        double.meanwhile["cacp/context/sync"] = lambda: written.wait(30)
        node.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
        eventually(lambda: not double.meanwhile)
        # What is written while a request is under way goes with the next, together.
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        contract = propose(node, shared)
        written.set()
        eventually(lambda: waiting(node) == 0)
        assert double.projects[shared]["status"] == "planning"
        assert double.contract(shared, contract) is not None


# --- batches to a peer of our own make ----------------------------------------------------------


class Taking:
    """A peer that takes so many messages at once, and lacks the projects of some."""

    def __init__(self, most: int, lacks: set[str]) -> None:
        self.most = most
        self.lacks = lacks
        self.batches: list[list[str]] = []

    async def post(self, url: str, body: bytes, *, key: str | None) -> Any:
        requests = orjson.loads(body)
        if len(requests) > self.most:
            raise Refused("refuses (HTTP 413)", status=413)
        self.batches.append([one["params"] for one in requests])
        return [self._answer(one) for one in requests]

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["params"] in self.lacks:
            error = {"code": -32602, "message": "no", "data": {"kind": "claim"}}
            self.lacks.remove(request["params"])
            return {"id": request["id"], "error": error}
        return {"id": request["id"], "result": {"status": "created"}}


class Composing:
    """Makes messages of names alone, and counts how many at once."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def messages(self, names: Mapping[Name, int | None]) -> list[tuple[Name, bytes | None]]:
        self.asked.append(len(names))
        return [(name, orjson.dumps({"method": "m", "params": name.entity_id})) for name in names]


def delivered(names: list[str], most: int, lacks: set[str]) -> tuple[Taking, Composing]:
    taking, composing = Taking(most, lacks), Composing()
    node = Self("aid://x/a@1", "a", True, True, SigningKey(bytes(32)))
    peer = Peer("aid://x/b@1", "http://x", "b", "verified", 1, 1, secret="s")

    async def rejoin(peer: Peer) -> None:
        raise AssertionError

    link = MeshLink(cast(Client, taking), node, peer, cast(Composer, composing), rejoin)
    asyncio.run(link.deliver({Name("contract", "p", name): 1 for name in names}))
    return taking, composing


def test_a_peer_that_takes_smaller_batches_gets_them() -> None:
    names = [str(number) for number in range(70)]
    taking, _ = delivered(names, 20, set())
    assert [name for batch in taking.batches for name in batch] == names
    assert max(map(len, taking.batches)) <= 20


def test_few_messages_of_a_backlog_are_made_at_once() -> None:
    names = [str(number) for number in range(450)]
    taking, composing = delivered(names, 1_000, set())
    assert [name for batch in taking.batches for name in batch] == names
    assert (sum(composing.asked), max(composing.asked)) == (450, MADE_AT_ONCE)


def test_what_lacked_its_project_is_sent_again_after_it() -> None:
    taking, _ = delivered(["a", "b", "c"], 10, {"b"})
    assert taking.batches == [["a", "b", "c"], ["p"], ["b"]]
