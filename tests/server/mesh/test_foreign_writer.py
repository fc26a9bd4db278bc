"""How what a foreign peer lacks is written to it (design §8)."""

from pathlib import Path

from tests.server.mesh.test_foreign_channel import SKIPS, settled, shared_by, waiting
from tests.support.foreign_peer import AGENT, REPO, ForeignPeerDouble
from tests.support.mesh import peers, propose
from tests.support.node import AGENT as OURS
from tests.support.node import Node
from tests.support.waiting import eventually


def test_a_join_is_told_as_the_text_says(tmp_path: Path) -> None:
    """CACP 2.0, cacp/project/join: it broadcasts cacp/repo/sync, here with the peer's own id."""
    with (
        ForeignPeerDouble(skew=3) as double,
        Node(tmp_path, repo="alpha", peers=double.url) as node,
    ):
        eventually(lambda: len(peers(node)) == 1)
        shared = double.create(node.url, "alpha")
        known = {one["name"]: one["repo_id"] for one in double.repos(shared)}
        place = {"projectId": shared, "repoName": "alpha"}
        node.call("cacp/project/join", **place, agentEndpoint="http://127.0.0.1:1")
        eventually(lambda: "cacp/repo/sync" in double.calls)
        eventually(lambda: waiting(node) == 0)
        found = {one["name"]: one for one in double.repos(shared)}
        assert {name: one["repo_id"] for name, one in found.items()} == known
        assert found["alpha"]["assigned_agent"] == OURS
        assert found["alpha"]["agent_endpoint"] == "http://127.0.0.1:1"
        assert "cacp/project/sync" not in double.calls


def test_a_peer_that_knows_no_repo_sync_is_told_of_a_join_by_the_project(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        shared = double.create(node.url, "alpha")
        double.refuses["cacp/repo/sync"] = {"code": -32601, "message": "Method not found"}
        node.call("cacp/project/join", projectId=shared, repoName="alpha")
        eventually(lambda: "cacp/project/sync" in double.calls and waiting(node) == 0)
        found = {one["name"]: one["assigned_agent"] for one in double.repos(shared)}
        assert found == {REPO: AGENT, "alpha": OURS}


def test_what_only_the_peer_holds_survives_a_whole_project(tmp_path: Path) -> None:
    """Work of a third agent, which it knows and we don't."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        third = {"repo_id": "third", "name": "third", "role": "r", "language": "l"}
        packet = {
            "packet_id": "theirs-1",
            "type": "question",
            "from_repo": "third",
            "from_agent": "third",
            "content": {},
            "timestamp": double.now(),
        }
        double.projects[shared]["context_history"].append(packet)
        double.rename(node.url, shared, repos=[*double.repos(shared), third])
        node.call("cacp/project/updateStatus", projectId=shared, status="implementing")
        eventually(lambda: double.projects[shared]["status"] == "implementing")
        assert packet in double.projects[shared]["context_history"]
        assert [one["repo_id"] for one in double.repos(shared) if one["name"] == "third"] == [
            "third"
        ]


def test_what_is_skipped_but_shown_is_delivered(tmp_path: Path) -> None:
    """It took it after all: what it shows says the same."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        shared = shared_by(node, double)
        contract = propose(node, shared)
        eventually(lambda: settled(node, contract))
        double.meanwhile["cacp/contract/sync"] = lambda: double.refuses.update(
            {"cacp/contract/sync": SKIPS}
        )
        node.call("cacp/contract/respond", projectId=shared, contractId=contract, action="reject")
        eventually(lambda: waiting(node) == 0)
