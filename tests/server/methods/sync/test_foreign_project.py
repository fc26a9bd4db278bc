"""What is taken of the projects, repos and claims that foreign peers send (design §5, §8)."""

from typing import Any

from server.domain.identifiers import repo_id_for
from tests.server.methods.refusals import refused
from tests.server.methods.sync.foreign_peer import (
    MOBILE,
    PEER,
    contract_of,
    invited,
    key,
    mesh,
    project_of,
    send,
    shared,
    theirs,
)
from tests.support.node import Node
from tests.support.team import FRONTEND, Team
from tests.support.waiting import eventually

__all__ = ["key", "mesh", "shared"]


def test_a_repo_and_its_claim_are_taken(shared: Team) -> None:
    """CACP 2.0, cacp/project/join broadcasts cacp/repo/sync."""
    repo = shared.repo(MOBILE)
    assert (repo["agent_id"], repo["language"]) == (PEER, "swift")


def test_a_repos_agent_is_read_under_its_other_name_too(mesh: Node, key: str) -> None:
    """Design §8: assigned_agent for a repo's agent."""
    team = invited(mesh, key)
    repo = theirs(repo_id="their-own-id", assigned_agent=PEER, agent_endpoint="http://127.0.0.1:1")
    assert send(mesh, "repo/sync", projectId=team.project, repo=repo)["status"] == "updated"
    assert send(mesh, "repo/sync", projectId=team.project, repo=repo)["status"] == "skipped"
    found = team.repo(MOBILE)
    assert (found["agent_id"], found["agent_endpoint"]) == (PEER, "http://127.0.0.1:1")
    assert found["repo_id"] == repo_id_for(team.project, MOBILE)


def test_a_claim_on_what_another_holds_is_kept_as_a_conflict(shared: Team) -> None:
    """Design §5: of two claims made apart the other becomes a conflict record."""
    repo = theirs(repo_id="x", agent_id=PEER) | {"name": FRONTEND}
    result = send(shared.node, "repo/sync", projectId=shared.project, repo=repo)
    assert result["status"] == "skipped"
    assert result["skipped"][0]["kind"] == "repo"
    assert shared.repo(FRONTEND)["agent_id"] == "aid://example.com/frontend@1.0.0"


def test_an_endpoint_that_must_not_be_called_is_passed_over(mesh: Node, key: str) -> None:
    team = invited(mesh, key)
    repo = theirs(repo_id="x", agent_id=PEER, agent_endpoint="http://169.254.169.254/")
    result = send(mesh, "repo/sync", projectId=team.project, repo=repo)
    assert (result["status"], len(result["skipped"])) == ("updated", 1)
    assert "agent_endpoint" not in team.repo(MOBILE)


def test_a_peers_project_is_taken_whole(mesh: Node) -> None:
    """CACP 2.0, cacp/project/sync."""
    project = project_of()
    assert send(mesh, "project/sync", project=project)["status"] == "created"
    found = mesh.call("cacp/project/get", projectId=project["project_id"])
    assert (found["name"], found["objective"], found["status"]) == (
        "Theirs",
        "Everything",
        "planning",
    )
    assert found["created_at"] == "2026-01-01T00:00:00.000000+00:00"
    [repo], [contract], [packet] = (
        found["repos"],
        found["contracts"],
        found["context_history"],
    )
    assert repo["repo_id"] == repo_id_for(project["project_id"], MOBILE)
    assert contract["proposed_by"] == packet["from_repo"] == repo["repo_id"]
    assert send(mesh, "project/sync", project=project)["status"] == "skipped"


def test_a_peer_moves_the_header_only_by_what_it_changed(mesh: Node) -> None:
    project = project_of(contracts=[], context_history=[])
    send(mesh, "project/sync", project=project)
    at = {"projectId": project["project_id"]}
    mesh.call("cacp/project/updateStatus", key=mesh.operator, **at, status="implementing")
    send(mesh, "project/sync", project=project)
    assert mesh.call("cacp/project/get", **at)["status"] == "implementing"
    result = send(mesh, "project/sync", project=project | {"name": "Renamed"})
    assert result["status"] == "updated"
    found = mesh.call("cacp/project/get", **at)
    assert (found["name"], found["status"]) == ("Renamed", "implementing")


def test_what_a_peer_leaves_out_of_a_header_stays(mesh: Node) -> None:
    project = project_of(contracts=[], context_history=[])
    send(mesh, "project/sync", project=project | {"objective": "o", "status": "implementing"})
    short = {name: project[name] for name in ("project_id", "repos")} | {"name": "Renamed"}
    assert send(mesh, "project/sync", project=short)["status"] == "updated"
    found = mesh.call("cacp/project/get", projectId=project["project_id"])
    assert [found[name] for name in ("name", "objective", "status")] == [
        "Renamed",
        "o",
        "implementing",
    ]


def test_an_outsider_changes_nothing_of_a_project(mesh: Node, key: str) -> None:
    team = Team.on(mesh, key)
    before = team.backend("project/get")
    project = {
        "project_id": team.project,
        "name": "Mine now",
        "objective": "",
        "repos": [theirs(repo_id="x", agent_id=PEER)],
        "contracts": [contract_of()],
    }
    for name in ("User Auth", "Mine now"):
        result = send(mesh, "project/sync", project=project | {"name": name})
        assert result["status"] == "skipped"
        assert {one["kind"] for one in result["skipped"]} == {"project", "repo", "contract"}
    assert team.backend("project/get") == before


# --- what was archived, deleted or released here -------------------------------------------------


def test_what_a_peer_sends_of_an_archived_or_deleted_project_is_refused(shared: Team) -> None:
    """It knows neither, so it is told each time, and counted."""
    node, project = shared.node, shared.project
    sent = {"project_id": project, "name": "Again", "objective": "o"}
    calls: dict[str, dict[str, Any]] = {
        "project/sync": {"project": project_of() | sent},
        "contract/sync": {"projectId": project, "contract": contract_of()},
        "repo/sync": {"projectId": project, "repo": theirs(repo_id="x", agent_id=PEER)},
    }
    for what, code in (("archive", -32004), ("delete", -32602)):
        shared.backend(f"project/{what}")
        for method, params in calls.items():
            with refused(code, f"project_{what}d"):
                send(node, method, **params)
    rows = node.query("SELECT count(*) FROM projects WHERE project_id = ?", project)
    assert rows == [(0,)]
    eventually(lambda: f'deleted_refused_total{{peer="{PEER}"}} 3.0' in node.get("/metrics").text)


def test_a_released_peer_does_not_take_its_repo_back(shared: Team) -> None:
    """Its whole object shows its claim again with each change."""
    shared.backend("repo/release", repoName=MOBILE)
    again = theirs(repo_id=repo_id_for(shared.project, MOBILE), agent_id=PEER)
    for _ in range(2):
        result = send(shared.node, "repo/sync", projectId=shared.project, repo=again)
        assert (result["status"], "was released from the peer" in result["reason"]) == (
            "skipped",
            True,
        )
    assert "agent_id" not in shared.repo(MOBILE)
    shared.backend("repo/reassign", repoName=MOBILE, agentId=PEER)
    assert shared.repo(MOBILE)["agent_id"] == PEER
