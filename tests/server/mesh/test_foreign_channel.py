"""How entities reach a foreign peer, and what becomes of those that it doesn't take (design §8)."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from peers.client import HttpClient
from peers.digest import Name
from peers.errors import PeerRefused
from peers.signing import SigningKey
from server.domain.errors import Unavailable
from server.mesh.foreign_channel import ForeignChannel
from server.node import Node as Self
from server.store import peers as store
from server.store import projects
from server.store.database import Database
from server.store.peers import Peer
from tests.support.foreign_peer import AGENT, REPO, ForeignPeerDouble, card_of
from tests.support.located import connect, location_of, prepare
from tests.support.mesh import holds, peers, project, propose, status
from tests.support.node import AGENT as OURS
from tests.support.node import Node
from tests.support.waiting import eventually


def test_a_project_that_is_unknown_is_fetched_from_who_speaks_of_it(tmp_path: Path) -> None:
    """Design §8: a sync for a project that we don't have is not lost."""
    repo = {"repo_id": "theirs", "name": REPO, "role": "m", "language": "l"}
    claimed = repo | {"assigned_agent": AGENT}
    whole = {"project_id": "p1", "name": "Theirs", "repos": [claimed]}
    whole |= {"contracts": [], "context_history": []}
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        double.projects["p1"] = whole
        contract = double.contract_of(contract_id="c1", proposed_by="theirs")
        told = double.send(node.url, "cacp/contract/sync", projectId="p1", contract=contract)
        assert told["result"]["status"] == "skipped"
        eventually(lambda: holds(node, "p1") and status(node, "p1", "c1") == "proposed")
        assert "Traceback" not in node.log


def test_work_with_a_foreign_peer_goes_both_ways(tmp_path: Path) -> None:
    """Issue: projects, contracts, responses, context, implementations."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
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


# --- a foreign peer that writes while it is written to ----------------------------------


def shared_by(node: Node, double: ForeignPeerDouble) -> str:
    """A project in which the peer holds its repo; nothing of it is on its way to the peer."""
    eventually(lambda: len(peers(node)) == 1)
    shared = project(node)
    own = {"name": REPO, "role": "mobile", "language": "swift"}
    node.call("cacp/project/addRepo", key=node.operator, projectId=shared, repo=own)
    eventually(lambda: shared in double.projects)
    claimed = own | {"repo_id": "theirs", "assigned_agent": AGENT}
    double.send(node.url, "cacp/repo/sync", projectId=shared, repo=claimed)
    eventually(lambda: waiting(node) == 0)
    return shared


def waiting(node: Node) -> int:
    [peer] = peers(node)
    return int((peer.get("sync") or {"backlog": -1})["backlog"])


def settled(node: Node, contract: str) -> bool:
    """Whether the peer has the contract, and nothing is on its way to it."""
    known = node.query("SELECT 1 FROM exchanged WHERE entity_id = ?", contract)
    return bool(known) and waiting(node) == 0


def test_what_a_peer_was_told_of_a_project_does_not_come_back_as_its_own_change(
    tmp_path: Path,
) -> None:
    """Its copy, read before ours replaces it, is what we said before: no later write gives way."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        for status_ in ("implementing", "integrating", "complete"):
            node.call("cacp/project/updateStatus", projectId=shared, status=status_)
            eventually(lambda: waiting(node) == 0)
            assert double.projects[shared]["status"] == status_
            assert node.call("cacp/project/get", projectId=shared)["status"] == status_
        double.rename(node.url, shared, status="planning")
        assert node.call("cacp/project/get", projectId=shared)["status"] == "planning"


def test_a_header_that_a_peer_changes_while_ours_is_on_its_way_ends_alike(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
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
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
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
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
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


# --- what a peer has changed without our hearing of it ------------------------------------------


def test_a_header_reaches_a_peer_whose_clock_is_far_ahead(tmp_path: Path) -> None:
    with (
        ForeignPeerDouble(skew=3_600) as double,
        Node(tmp_path, repo="alpha", peers=double.url) as node,
    ):
        shared = shared_by(node, double)
        contract = propose(node, shared)
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: waiting(node) == 0)
        assert double.projects[shared]["status"] == "implementing"
        assert double.contract(shared, contract) is not None


def test_what_a_peer_could_not_tell_us_is_merged_before_it_is_replaced(tmp_path: Path) -> None:
    """Its broadcast was lost: it is read before ours goes, and both stay."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        lost = double.contract(shared, contract)
        assert lost is not None
        lost |= {"status": "agreed", "updated_at": double.now()}
        place = {"projectId": shared, "contractId": contract}
        node.call("cacp/contract/respond", **place, action="request_change")
        eventually(lambda: (double.contract(shared, contract) or {})["status"] == "negotiating")
        [(kinds,)] = node.query(
            "SELECT count(*) FROM facts WHERE contract_id = ? AND kind = 'response'", contract
        )
        assert kinds == 2, "the agreement is on record, and ours"


def test_what_a_peer_said_while_this_node_was_down_is_found(tmp_path: Path) -> None:
    """It tells a change once, and counts on nothing more."""
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        node.stop()
        with pytest.raises(httpx.ConnectError):
            double.change(node.url, shared, contract, status="agreed")
        node.start()
        eventually(lambda: status(node, shared, contract) == "agreed")


def test_a_peer_that_is_gone_is_down_though_nothing_waits_for_it(tmp_path: Path) -> None:
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared_by(node, double)
        double.refuses["cacp/project/get"] = {"http": 503, "message": "later"}
        eventually(lambda: sync(node)["health"] == "down")
        double.refuses.clear()
        eventually(lambda: sync(node)["health"] == "up")


def test_a_peer_that_changes_what_it_holds_between_two_calls_is_read_again(tmp_path: Path) -> None:
    """It skips what was sent, for what it holds is newer: that is merged, and ours sent above."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))

        def agrees() -> None:
            held = double.contract(shared, contract)
            assert held is not None
            held |= {"status": "agreed", "updated_at": double.now()}

        double.calls.clear()
        double.meanwhile["cacp/contract/get"] = agrees
        place = {"projectId": shared, "contractId": contract}
        node.call("cacp/contract/respond", **place, action="request_change")
        eventually(lambda: (double.contract(shared, contract) or {})["status"] == "negotiating")
        eventually(lambda: waiting(node) == 0)
        sent = "cacp/contract/sync"
        assert double.calls == ["cacp/contract/get", sent, "cacp/project/get", sent]


# --- what a peer does not take ------------------------------------------------------------------


SKIPS = {"result": {"status": "skipped", "reason": "local version is newer or same"}}


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (SKIPS, "answers cacp/contract/sync with skipped: local version is newer or same"),
        ({"result": {"status": "error"}}, "answers cacp/contract/sync with error: "),
        ({"code": -32000, "message": "Server error: x"}, "refuses: Server error: x"),
        ({"http": 413, "message": "too large"}, "refuses (HTTP 413): too large"),
        ({"http": 500, "message": "oops"}, "refuses (HTTP 500): oops"),
    ],
)
def test_what_is_not_taken_is_not_delivered_and_holds_nothing_up(
    tmp_path: Path, refusal: dict[str, Any], said: str
) -> None:
    """It is counted, told once, and tried again; a try is bounded."""
    settings = {"repo": "alpha", "log_format": "json"}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        double.refuses["cacp/contract/sync"] = refusal
        contract = propose(node, shared)
        eventually(lambda: sync(node)["undelivered"] == 1)
        node.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
        eventually(lambda: len(double.projects[shared]["context_history"]) == 1)
        eventually(lambda: sync(node)["retries"] >= 2)
        found = sync(node)
        assert (found["health"], found["backlog"], found["lastError"]) == ("up", 1, said)
        assert double.calls.count("cacp/contract/sync") <= 3 * (found["retries"] + 1)
        assert f'cacp_peer_undelivered{{peer="{AGENT}"}} 1.0' in node.get("/metrics").text
        double.refuses.clear()
        eventually(lambda: sync(node)["undelivered"] == 0 and waiting(node) == 0)
        assert (sync(node)["lastError"], double.contract(shared, contract) is None) == (None, False)
        for event in ("peer_undelivered", "peer_delivered"):
            assert node.log.count(f'"{event}"') == 1


def test_what_is_not_taken_outlasts_a_restart(tmp_path: Path) -> None:
    """And what was taken after it is not sent again."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        double.refuses["cacp/contract/sync"] = SKIPS
        contract = propose(node, shared)
        eventually(lambda: sync(node)["undelivered"] == 1)
        node.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
        eventually(lambda: len(double.projects[shared]["context_history"]) == 1)
        node.restart()
        eventually(lambda: sync(node)["undelivered"] == 1)
        double.refuses.clear()
        eventually(lambda: double.contract(shared, contract) is not None and waiting(node) == 0)
        assert [method for method, _ in double.taken].count("cacp/context/sync") == 1


@pytest.mark.parametrize(
    "refusal",
    [
        {"code": -32000, "message": "Server error: out of memory"},
        {"code": -32602, "message": "Invalid params: projectId required"},
        {"code": -32601, "message": "Method not found"},
        {"result": {"name": "no project"}},
        {"http": 500, "message": "oops"},
    ],
)
def test_a_project_that_can_not_be_read_is_not_replaced(
    tmp_path: Path, refusal: dict[str, Any]
) -> None:
    """Only that the peer has no such project lets ours go to it unread."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        double.refuses["cacp/project/get"] = refusal
        double.calls.clear()
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: sync(node)["retries"] >= 2)
        assert set(double.calls) == {"cacp/project/get"}
        assert (sync(node)["undelivered"], waiting(node)) == (1, 1)
        double.refuses.clear()
        eventually(lambda: waiting(node) == 0)
        assert double.projects[shared]["status"] == "implementing"


def test_a_peer_that_refuses_every_call_is_down(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        double.refuses["cacp/project/get"] = {"http": 503, "message": "later"}
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: sync(node)["health"] == "down")
        assert "HTTP 503" in sync(node)["lastError"]
        double.refuses.clear()
        eventually(lambda: waiting(node) == 0 and sync(node)["health"] == "up")


def test_what_can_not_be_merged_is_not_replaced(tmp_path: Path) -> None:
    """A contract of the peer that no node takes: it stays as it is there; all else goes."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        odd, fine = propose(node, shared), propose(node, shared)
        eventually(lambda: settled(node, odd) and settled(node, fine))
        held = double.contract(shared, odd)
        assert held is not None
        held["status"] = "abandoned"
        for contract in (odd, fine):
            place = {"projectId": shared, "contractId": contract}
            node.call("cacp/contract/respond", **place, action="request_change")
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: (double.contract(shared, fine) or {})["status"] == "negotiating")
        eventually(lambda: double.projects[shared]["status"] == "implementing")
        eventually(lambda: sync(node)["undelivered"] == 1)
        assert "can't be merged here: contract.status" in sync(node)["lastError"]
        assert held in double.projects[shared]["contracts"]
        double.change(node.url, shared, odd, status="proposed")
        eventually(lambda: waiting(node) == 0)
        assert (double.contract(shared, odd) or {})["status"] == "negotiating"


def test_a_project_that_this_node_can_not_merge_now_is_not_replaced(tmp_path: Path) -> None:
    """Unavailable: the disk is full, or the node stops."""
    asked: list[str] = []

    class Peerless:
        async def get(self, url: str, *body: Any, **who: Any) -> Any:
            raise PeerRefused("refuses (HTTP 404)", status=404)

        post = get

        async def call(self, url: str, method: str, params: Any, **who: Any) -> Any:
            asked.append(method)
            return {"project_id": "p", "name": "theirs"}

    async def fails(peer: Peer, messages: list[Any]) -> list[object]:
        return [Unavailable("The disk is full", reason="disk_full")] * len(messages)

    async def deliver() -> dict[Name, str]:
        database = Database(location_of(tmp_path / "a.db"))
        await database.open(prepare(tmp_path / "a.db").last_stamp)
        header = projects.ProjectHeader("p", "ours", "o", "planning", "any", 1, 1)
        await database.write(lambda to: projects.insert(to.connection, header, []))
        node = Self("aid://x/a@1", "a", True, True, SigningKey(bytes(32)))
        peer = Peer(AGENT, "http://127.0.0.1:1", REPO, "unkeyed", 1, 1)
        link = ForeignChannel(cast(HttpClient, Peerless()), database, node, peer, fails)
        try:
            return await link.deliver({Name("project", "p", "p"): 1})
        finally:
            await database.close()

    said = asyncio.run(deliver())
    assert said == {Name("project", "p", "p"): "shows what can't be merged here: The disk is full"}
    assert asked == ["cacp/peer/announce", "cacp/project/get"]


# --- who is written to, and in whose name -------------------------------------------------------


def test_a_peer_is_called_in_our_name_and_with_its_key(tmp_path: Path) -> None:
    """CACP 2.0, Headers. The key goes to its endpoint, and into no log, error or answer."""
    key = "sk-" + "x" * 40
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", log_format="json") as node:
        with_key(node, lambda db: store.put_api_key(db, double.url, key))
        with_key(node, lambda db: store.put(db, AGENT, double.url + "/", REPO, "unkeyed", 1))
        shared = project(node)
        eventually(lambda: shared in double.projects)
        for headers in double.headers:
            assert headers["x-agent-id"] == OURS
            assert headers["authorization"] == f"Bearer {key}"
        double.refuses["cacp/project/get"] = {"http": 401, "message": "who?"}
        propose(node, shared)
        eventually(lambda: sync(node)["health"] == "down")
        assert key not in node.log + node.get("/peers").text + node.get("/metrics").text


def test_a_peer_that_speaks_another_major_version_is_told_nothing(tmp_path: Path) -> None:
    """CACP 2.0, Versioning. Its card was another when it was registered."""
    with ForeignPeerDouble(card=card_of("3.0")) as double, Node(tmp_path, repo="alpha") as node:
        with_key(node, lambda db: store.put(db, AGENT, double.url, REPO, "unkeyed", 1))
        eventually(lambda: bool(peers(node)) and sync(node) is not None)
        eventually(lambda: sync(node)["health"] == "down")
        project(node)
        eventually(lambda: waiting(node) == 1)
        assert "speaks CACP '3.0', and this node 2.0" in sync(node)["lastError"]
        assert double.calls == []


def with_key(node: Node, write: Callable[[Any], object]) -> None:
    """Write into the file of a running node, as the operator's commands do."""

    db = connect(node.db)
    db.execute("BEGIN IMMEDIATE")
    write(db)
    db.execute("COMMIT")
    db.close()


def sync(node: Node) -> Any:
    [peer] = peers(node)
    unknown = {"undelivered": -1, "health": "unknown", "retries": 0}
    return {"lastError": None} | (peer.get("sync") or unknown)
