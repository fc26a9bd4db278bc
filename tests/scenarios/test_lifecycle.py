"""A project is archived and deleted, and a repo changes hands, over three nodes and restarts."""

from typing import Any

import pytest

from server.store import export
from server.store.sqlite import migrate
from tests.support.mesh import Mesh, agent_of, equal, holds, join, peers, project, propose, status
from tests.support.node import Node, RpcError
from tests.support.shared_files import share
from tests.support.waiting import eventually


def refusal(node: Node, method: str, project_id: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as error:
        node.call(method, key=node.operator, projectId=project_id, **params)
    return error.value


def reason(node: Node, project_id: str) -> Any:
    """Why a project can't be read; None if it can."""
    try:
        node.call("cacp/project/get", projectId=project_id)
    except RpcError as error:
        return error.reason
    return None


def content(node: Node, project_id: str) -> int:
    tables = ("projects", "repos", "contracts", "facts", "packets", "files", "file_contents")
    sql = " + ".join(f"(SELECT count(*) FROM {name} WHERE project_id = ?)" for name in tables)
    [(rows,)] = node.query(f"SELECT {sql}", *[project_id] * len(tables))
    return int(rows)


def root(node: Node) -> Any:
    held = node.get("/mesh").json()
    return None if held["behind"] else held["digest"]


def same_digest(*nodes: Node) -> bool:
    roots = {root(node) for node in nodes}
    return len(roots) == 1 and None not in roots


@pytest.mark.sqlite
def test_a_node_that_was_away_does_not_bring_a_deleted_project_back(mesh: Mesh) -> None:
    """It wrote for the project meanwhile, and hears of the deletion when it is back; the node that
    deleted is killed at once."""
    alpha, beta, gamma = mesh.three()
    doomed, kept = project(alpha), project(alpha)
    for node, repo in ((beta, "beta"), (gamma, "gamma")):
        join(node, doomed, repo)
    contract = propose(gamma, doomed)
    share(alpha, doomed, b"some bytes")
    eventually(lambda: status(alpha, doomed, contract) and equal(alpha, beta, gamma))
    alpha.kill()
    beta.kill()
    late = propose(gamma, doomed, name="Late")
    given: dict[str, Any] = {"projectId": doomed, "contractId": contract}
    content_of = {"path": "/late"}
    gamma.call("cacp/contract/update", **given, content=content_of, changeNote="while away")
    gamma.kill()
    alpha.start()
    beta.start()
    eventually(lambda: len(peers(alpha)) == 2)

    alpha.call("cacp/project/archive", key=alpha.operator, projectId=doomed)
    eventually(lambda: not holds(beta, doomed))
    wrong = refusal(beta, "cacp/project/updateStatus", doomed, status="complete")
    assert (wrong.reason, wrong.data["archivedBy"]) == ("project_archived", agent_of("alpha"))
    beta.call("cacp/project/unarchive", key=beta.operator, projectId=doomed)
    eventually(lambda: holds(alpha, doomed))
    wrong = refusal(beta, "cacp/project/delete", doomed)
    assert (wrong.reason, wrong.data["node"]) == ("not_founder", "aid://example.com/alpha")
    alpha.call("cacp/project/delete", key=alpha.operator, projectId=doomed)
    alpha.kill()
    alpha.start()
    eventually(lambda: reason(beta, doomed) == "project_deleted")

    gamma.start()
    eventually(lambda: reason(gamma, doomed) == "project_deleted")
    eventually(lambda: equal(alpha, beta, gamma) and same_digest(alpha, beta, gamma))
    for node in (alpha, beta, gamma):
        assert content(node, doomed) == 0
        assert holds(node, kept)
        wrong = refusal(node, "cacp/project/get", doomed)
        assert wrong.data["deletedBy"] == agent_of("alpha")
        assert refusal(node, "cacp/contract/get", doomed, contractId=late).data["name"] == (
            "Profiles"
        )
    eventually(
        lambda: all(
            node.get("/health").json()["status"] == "healthy" for node in (alpha, beta, gamma)
        )
    )

    # The tombstone is in every copy.
    copy = gamma.db.parent / "copy.db"
    migrate.copy(gamma.db, copy)
    with export.snapshot(copy) as db:
        [line] = export.lines(db, "project_lifecycle")
    assert doomed.encode() in line
    assert b'"state":"deleted"' in line


def test_a_repo_whose_agent_is_gone_gets_another_one_everywhere(mesh: Mesh) -> None:
    """Its node is away for good; the node that created the project releases it, and a third takes
    it. When the first is back, it follows."""
    alpha, beta, gamma = mesh.three()
    shared = project(alpha)
    join(gamma, shared, "gamma")
    eventually(lambda: equal(alpha, beta, gamma))
    wrong = refusal(beta, "cacp/repo/release", shared, repoName="gamma")
    assert (wrong.reason, wrong.data["node"]) == ("held_elsewhere", agent_of("gamma"))
    gamma.kill()
    alpha.call(
        "cacp/repo/reassign",
        key=alpha.operator,
        projectId=shared,
        repoName="gamma",
        agentId=agent_of("alpha"),
    )
    eventually(lambda: equal(alpha, beta))
    released = alpha.call(
        "cacp/repo/release", key=alpha.operator, projectId=shared, repoName="gamma"
    )
    assert released["formerAgentId"] == agent_of("alpha")
    eventually(lambda: equal(alpha, beta))
    beta.call("cacp/project/join", projectId=shared, repoName="gamma")
    gamma.start()
    eventually(lambda: equal(alpha, beta, gamma) and same_digest(alpha, beta, gamma))
    repos = {
        repo["name"]: repo.get("agent_id")
        for repo in gamma.call("cacp/project/get", projectId=shared)["repos"]
    }
    assert repos["gamma"] == agent_of("beta")
    given = {"type": "api_endpoint", "name": "n", "content": {}}
    wrong = refusal(gamma, "cacp/contract/propose", shared, **given)
    assert (wrong.reason, wrong.data["heldBy"]) == ("repo_released", agent_of("beta"))
