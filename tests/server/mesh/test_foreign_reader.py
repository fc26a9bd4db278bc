"""What a foreign peer holds is read as it is needed (design §8)."""

from pathlib import Path

from peers.client import ANSWER_MAX
from tests.server.mesh.test_foreign_channel import settled, shared_by, sync, waiting
from tests.support.foreign_peer import ForeignPeerDouble
from tests.support.mesh import propose
from tests.support.node import Node
from tests.support.waiting import eventually


def test_a_project_that_is_too_large_to_read_is_a_fault_of_that_project(tmp_path: Path) -> None:
    settings = {"repo": "alpha", "sync_seconds": 0.2}
    with ForeignPeerDouble() as double, Node(tmp_path, peers=double.url, **settings) as node:
        large = shared_by(node, double)
        small = shared_by(node, double)
        with double.lock:
            double.projects[large]["x"] = "x" * ANSWER_MAX
        for one in (large, small):
            node.call("cacp/project/updateStatus", projectId=one, status="implementing")
        eventually(lambda: double.projects[small]["status"] == "implementing")
        eventually(lambda: sync(node)["undelivered"] == 1)
        found = sync(node)
        assert found["health"] == "up"
        assert f"more than {ANSWER_MAX} bytes" in found["lastError"]
        # What follows the peer reads the others as well.
        double.projects[small] |= {"objective": "theirs", "updated_at": double.now()}
        eventually(lambda: node.call("cacp/project/get", projectId=small)["objective"] == "theirs")
        del double.projects[large]["x"]
        eventually(lambda: waiting(node) == 0)
        assert double.projects[large]["status"] == "implementing"


def test_a_change_of_one_contract_reads_one_contract(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        double.projects[shared]["large"] = "x" * 1_000_000
        double.calls.clear()
        double.answered = 0
        place = {"projectId": shared, "contractId": contract}
        node.call("cacp/contract/respond", **place, action="request_change")
        node.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
        eventually(lambda: len(double.projects[shared]["context_history"]) == 1)
        eventually(lambda: (double.contract(shared, contract) or {})["status"] == "negotiating")
        eventually(lambda: waiting(node) == 0)
        assert "cacp/project/get" not in double.calls
        assert double.answered < 10_000


def test_a_peer_that_shows_no_single_contract_is_read_whole(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        double.refuses["cacp/contract/get"] = {"code": -32601, "message": "Method not found"}
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        place = {"projectId": shared, "contractId": contract}
        node.call("cacp/contract/respond", **place, action="request_change")
        eventually(lambda: (double.contract(shared, contract) or {})["status"] == "negotiating")
        eventually(lambda: waiting(node) == 0)
        assert double.calls.count("cacp/contract/get") == 1
