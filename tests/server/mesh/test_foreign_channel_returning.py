"""What a foreign peer can't show, has forgotten, or never told; and what it costs (design §8)."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from server.store import peers as store
from tests.server.mesh.test_foreign_channel import settled, shared_by, sync, waiting, with_key
from tests.support.foreign_peer import AGENT, REPO, ForeignPeerDouble
from tests.support.mesh import holds, project, propose, status
from tests.support.node import AGENT as OURS
from tests.support.node import Node
from tests.support.waiting import eventually


def test_what_can_not_be_merged_holds_up_only_itself(tmp_path: Path) -> None:
    """It is of the peer alone, so nothing waits; the log names it."""
    settings = {"repo": "alpha", "log_format": "json"}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        odd = double.contract_of(name="x" * 300, proposed_by="theirs")
        double.projects[shared]["contracts"].append(odd)
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: double.projects[shared]["status"] == "implementing")
        eventually(lambda: waiting(node) == 0)
        assert double.contract(shared, odd["contract_id"]) == odd
        assert named(node, "peer_not_merged", odd["contract_id"]) == ["contract"]
        assert "contract.name" in node.log


def named(node: Node, event: str, id_: str) -> list[str]:
    """The entity in each line of the log about an id."""
    lines = [json.loads(line) for line in node.log.splitlines() if line.startswith("{")]
    return [one["entity"] for one in lines if (one["event"], one.get("id")) == (event, id_)]


# --- what a peer has forgotten ------------------------------------------------------------------


def test_a_peer_that_has_forgotten_all_is_given_all_again(tmp_path: Path) -> None:
    """Though nothing changes here; and it is registered with, for it has forgotten us too."""
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        double.forget()
        eventually(lambda: double.contract(shared, contract) is not None)
        assert double.registry == {OURS: True}
        eventually(lambda: waiting(node) == 0)


def test_a_peer_that_has_forgotten_us_is_registered_with_by_the_next_change(tmp_path: Path) -> None:
    """It was away too shortly to be missed."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        first = propose(node, shared)
        eventually(lambda: settled(node, first))
        double.forget()
        second = propose(node, shared)
        eventually(lambda: waiting(node) == 0)
        assert {one["contract_id"] for one in double.projects[shared]["contracts"]} == {
            first,
            second,
        }
        eventually(lambda: double.registry == {OURS: True})


def test_a_project_that_a_peer_does_not_take_again_is_undelivered(tmp_path: Path) -> None:
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        double.refuses["cacp/project/sync"] = {"code": -32000, "message": "Server error: full"}
        double.forget()
        eventually(lambda: sync(node)["lastError"] == "refuses: Server error: full")
        assert (sync(node)["undelivered"], sync(node)["health"]) == (1, "up")
        double.refuses.clear()
        eventually(lambda: shared in double.projects and waiting(node) == 0)


def test_a_peer_that_has_given_us_up_is_registered_with_again(tmp_path: Path) -> None:
    """At each start, and after it was down."""
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared_by(node, double)
        assert double.registry == {OURS: True}
        node.stop()
        double.give_up()
        node.start()
        eventually(lambda: double.registry == {OURS: True})
        double.refuses["cacp/project/get"] = {"http": 503, "message": "later"}
        eventually(lambda: sync(node)["health"] == "down")
        double.give_up()
        double.refuses.clear()
        eventually(lambda: double.registry == {OURS: True})


@pytest.mark.parametrize("status", [401, 404, 405])
def test_a_peer_that_takes_no_registration_is_announced_to(tmp_path: Path, status: int) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha") as node:
        double.refuses["/peers/register"] = {"http": status, "message": "no"}
        with_key(node, lambda db: store.put(db, AGENT, double.url, REPO, "unkeyed", 1))
        shared = project(node)
        eventually(lambda: shared in double.projects)
        assert double.calls[0] == "cacp/peer/announce"
        assert double.registered == []


# --- what a peer holds and never told -----------------------------------------------------------


def test_a_project_that_a_peer_made_before_it_met_us_is_found(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double:
        theirs, foreign = double.make("alpha"), double.make("alpha")
        for repo in double.repos(foreign):
            repo.pop("assigned_agent", None)
        contract = double.contract_of(proposed_by=double.own_repo(theirs)["repo_id"])
        double.projects[theirs]["contracts"].append(contract)
        settings = {"repo": "alpha", "sync_seconds": 0.2}
        with Node(tmp_path, peers=double.url, **settings) as node:
            at = contract["contract_id"]
            eventually(lambda: holds(node, theirs) and status(node, theirs, at) == "proposed")
            eventually(lambda: double.calls.count("cacp/project/list") >= 2)
            assert not holds(node, foreign), "it is none of the peer's"


def test_a_peer_that_lists_no_projects_is_not_asked_again(tmp_path: Path) -> None:
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double:
        double.refuses["cacp/project/list"] = {"code": -32601, "message": "Method not found"}
        with Node(tmp_path, peers=double.url, **settings) as node:
            shared_by(node, double)
            read = double.calls.count("cacp/project/get")
            eventually(lambda: double.calls.count("cacp/project/get") >= read + 2)
            assert double.calls.count("cacp/project/list") == 1
            assert sync(node)["health"] == "up"


# --- what it costs ------------------------------------------------------------------------------


# --- a race that the peer has lost --------------------------------------------------------------


def test_a_version_of_a_peer_that_lost_is_kept_and_both_are_told(tmp_path: Path) -> None:
    """Docs, mesh: the loser of a race is kept."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        double.refuses["cacp/contract/get"] = {"http": 503, "message": "later"}
        place = {"projectId": shared, "contractId": contract}
        for content in ({"path": "/2"}, {"path": "/3"}):
            node.call("cacp/contract/update", **place, content=content)
        mine = {"version": 2, "content": {"theirs": 2}}
        mine["proposed_by"] = double.own_repo(shared)["repo_id"]
        for _ in range(2):
            said = double.change(node.url, shared, contract, **mine)["result"]
            assert said["status"] == "skipped"
        first = node.call("cacp/contract/conflicts", **place)["conflicts"]
        assert [(one["version"], one["content"]) for one in first] == [(2, {"theirs": 2})]
        assert said["reason"] == "nothing new", "it is kept once"
        told = node.query(
            "SELECT entity_id, outcome, origin FROM changes WHERE entity = 'conflict'"
        )
        assert told == [(contract, "version_lost", AGENT)]
        double.refuses.clear()
        eventually(lambda: (double.contract(shared, contract) or {})["version"] == 3)
        eventually(lambda: waiting(node) == 0)
        assert node.call("cacp/contract/get", **place)["content"] == {"path": "/3"}


def test_what_a_peer_has_lost_in_a_race_of_its_own_is_sent_to_it_again(tmp_path: Path) -> None:
    """It reads its copy, takes our start, and writes its own step over both: it tells that whole,
    as ever, and nothing else would show that our start is gone from it."""
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        double.change(node.url, shared, contract, status="agreed")
        before = deepcopy(double.contract(shared, contract))
        assert before is not None
        place = {"projectId": shared, "contractId": contract}
        node.call("cacp/implementation/start", **place)
        eventually(lambda: workers(double, shared, contract) == 1 and waiting(node) == 0)
        own = double.own_repo(shared)["repo_id"]
        begun = {"repo_id": own, "agent_id": AGENT, "status": "in_progress"}
        stale = before["implementations"]
        sent = double.calls.count("cacp/contract/sync")
        double.change(node.url, shared, contract, implementations=[*stale, begun])
        eventually(lambda: workers(double, shared, contract) == 2)
        assert double.calls.count("cacp/contract/sync") > sent, "our start was gone from it"
        ours = node.call("cacp/contract/get", **place)["implementations"]
        assert [one["status"] for one in ours] == ["in_progress", "in_progress"]


def workers(double: ForeignPeerDouble, project_id: str, contract_id: str) -> int:
    """Of how many repos the peer knows that they have begun."""
    found = double.contract(project_id, contract_id)
    assert found is not None
    return sum(one["status"] != "pending" for one in found["implementations"])


def test_a_peer_that_never_shows_a_contract_as_it_is_is_not_written_to_for_ever(
    tmp_path: Path,
) -> None:
    """It drops what it doesn't know: that is sent once more for what it showed, then it is so."""
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))

        def forgets() -> None:
            known = double.contract(shared, contract)
            assert known is not None
            known["implementations"] = []
            double.meanwhile["cacp/contract/sync"] = forgets

        double.meanwhile["cacp/contract/sync"] = forgets
        place = {"projectId": shared, "contractId": contract}
        double.change(node.url, shared, contract, status="agreed")
        node.call("cacp/implementation/start", **place)
        eventually(lambda: double.calls.count("cacp/contract/sync") >= 2)
        double.calls.clear()
        eventually(lambda: double.calls.count("cacp/project/get") >= 5)
        assert double.calls.count("cacp/contract/sync") <= 1
