"""Archived and deleted projects, and released repos, as mesh peers tell of them (design §7)."""

import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils import uuid7

from server.domain.identifiers import founded_by, repo_id_for
from tests.cli.run import cacp
from tests.server.methods.refusals import refused
from tests.support.mesh_member import ALPHA, SOME_TIME, MeshMember
from tests.support.node import Node
from tests.support.waiting import eventually

DAY = 86_400_000_000


@pytest.fixture
def project(alpha: Node, beta: MeshMember) -> str:
    """A project that beta created, and in which alpha and beta have repos."""
    project_id = founded_by(beta.agent, UUID(bytes=uuid7().bytes))
    beta.project(project_id)
    repo = {"name": "alpha", "role": "service", "language": "python"}
    alpha.call("cacp/project/addRepo", key=alpha.operator, projectId=project_id, repo=repo)
    alpha.call("cacp/project/join", projectId=project_id, repoName="alpha")
    return project_id


def tell(teller: MeshMember, project: str, state: str, at: int = SOME_TIME, **more: Any) -> Any:
    """Tell that it has archived, unarchived or deleted a project."""
    body = {"state": state, "name": "Shop", "by": teller.agent, "stamp": at}
    register = body | {"signature": teller.signed("lifecycle", project, body)} | more
    given = {"project_id": project, "lifecycle": register}
    return teller.call("cacp/project/syncState", state=given)


def release(
    by: MeshMember, project: str, of: MeshMember, at: int, told_by: MeshMember | None = None
) -> Any:
    """Tell that `by` has released the repo of `of`."""
    repo_id = repo_id_for(project, of.name)
    body = {"agent_id": of.agent.partition("@1")[0], "by": by.agent, "released_at": at}
    register = body | {"repo_id": repo_id, "signature": by.signed("release", repo_id, body)}
    given = {"project_id": project, "releases": [register]}
    return (told_by or by).call("cacp/project/syncState", state=given)


def pulled(by: MeshMember, project: str) -> dict[str, Any]:
    """What alpha passes on of a project, by method."""
    wanted = {"entity": "project", "project_id": project, "entity_id": project}
    messages = by.call("cacp/sync/pull", entities=[wanted])["messages"]
    return {message["method"]: message["params"] for message in messages}


def held(node: Node, project: str) -> list[int]:
    """How many rows of a project there are, by table."""
    tables = ("projects", "repos", "contracts", "facts", "packets", "claim_conflicts")
    sql = "SELECT count(*) FROM {} WHERE project_id = ?"
    return [node.query(sql.format(table), project)[0][0] for table in tables]


def test_nothing_of_a_deleted_project_is_taken_again(
    alpha: Node, beta: MeshMember, gamma: MeshMember, project: str
) -> None:
    """Whoever sends it and whenever it was written; the sender is told."""
    contract = str(uuid4())
    beta.contract(project, contract, beta.fact(contract, beta.version(project)))
    assert all(held(alpha, project)[:4])
    assert tell(beta, project, "deleted")["status"] == "updated"
    assert held(alpha, project) == [0] * 6
    with refused(-32602, "project_deleted", deletedBy=beta.agent, name="Shop"):
        alpha.call("cacp/project/get", projectId=project)
    before = deleted_refused(alpha, gamma)
    for stamp in (SOME_TIME - 9, SOME_TIME + 9):
        version = gamma.version(project, stamp)
        wrong = gamma.refused("cacp/project/sync", **whole(gamma, project, stamp))
        assert wrong.reason == "project_deleted"
        with refused(-32602, "project_deleted", deletedBy=beta.agent):
            gamma.contract(project, contract, gamma.fact(contract, version))
    for state in ("archived", "active"):
        assert tell(beta, project, state, SOME_TIME + 10)["status"] == "skipped"
    assert held(alpha, project) == [0] * 6
    eventually(lambda: deleted_refused(alpha, gamma) == before + 4)
    assert tell(beta, project, "deleted")["status"] == "skipped", "known"
    messages = pulled(gamma, project)
    assert list(messages) == ["cacp/project/syncState"]
    assert messages["cacp/project/syncState"]["state"]["lifecycle"]["signature"]["node"] == (
        beta.agent
    )


def whole(by: MeshMember, project: str, at: int) -> dict[str, Any]:
    header = {
        "name": "Theirs",
        "objective": "o",
        "status": "planning",
        "agreement_policy": "any",
        "created_at": at,
        "stamp": at,
    }
    registers = header | {"signature": by.signed("header", project, header), "repos": []}
    return {"project": {"project_id": project, "name": "Theirs"}, "registers": registers}


def deleted_refused(node: Node, by: MeshMember) -> float:
    line = f'cacp_peer_deleted_refused_total{{peer="{by.agent}"}} '
    lines = [entry for entry in node.get("/metrics").text.splitlines() if entry.startswith(line)]
    return float(lines[0].removeprefix(line)) if lines else 0.0


def test_a_deletion_comes_before_the_project(alpha: Node, beta: MeshMember) -> None:
    project = founded_by(beta.agent, UUID(bytes=uuid7().bytes))
    assert tell(beta, project, "deleted")["status"] == "updated"
    with refused(-32602, "project_deleted"):
        beta.project(project)
    assert held(alpha, project) == [0] * 6


def test_who_did_not_create_it_deletes_nothing(
    alpha: Node, beta: MeshMember, gamma: MeshMember, project: str
) -> None:
    """Nor archives it without taking part, nor in another's name."""
    for state in ("deleted", "archived"):
        told = tell(gamma, project, state)
        assert (told["status"], "may not make the project" in told["reason"]) == ("skipped", True)
    body = {"state": "deleted", "name": "Shop", "by": beta.agent, "stamp": SOME_TIME}
    forged = gamma.signed("lifecycle", project, body) | {"node": beta.agent}
    told = tell(gamma, project, "deleted", by=beta.agent, signature=forged)
    assert "does not match the key" in told["reason"]
    assert held(alpha, project)[0] == 1
    assert alpha.call("cacp/project/get", projectId=project)["name"] == "Theirs"


def test_an_archived_project_takes_what_its_peers_wrote(
    alpha: Node, beta: MeshMember, project: str
) -> None:
    """They may not know yet. Callers here only read; the later statement counts."""
    assert tell(beta, project, "archived", SOME_TIME + 5)["status"] == "updated"
    with refused(-32004, "project_archived", archivedBy=beta.agent):
        alpha.call("cacp/project/updateStatus", projectId=project, status="complete")
    contract = str(uuid4())
    beta.contract(project, contract, beta.fact(contract, beta.version(project)))
    assert held(alpha, project)[2] == 1
    assert tell(beta, project, "active", SOME_TIME + 4)["status"] == "skipped"
    assert "archived_by" in alpha.call("cacp/project/get", projectId=project)
    again = alpha.call("cacp/project/unarchive", key=alpha.operator, projectId=project)
    assert again["status"] == "active"
    register = pulled(beta, project)["cacp/project/syncState"]["state"]["lifecycle"]
    assert (register["state"], register["signature"]["node"]) == ("active", ALPHA)
    assert tell(beta, project, "archived", SOME_TIME + 6)["status"] == "skipped"


def test_what_is_stamped_too_far_ahead_waits(alpha: Node, beta: MeshMember, project: str) -> None:
    ahead = time.time_ns() // 1000 + 9 * DAY
    assert "deferred" in tell(beta, project, "archived", ahead)["reason"]
    assert "archived_by" not in alpha.call("cacp/project/get", projectId=project)


def test_an_unknown_project_is_archived_once_it_is_here(alpha: Node, beta: MeshMember) -> None:
    assert tell(beta, str(uuid4()), "archived")["reason"] == "the project is unknown here"


def test_a_claim_is_released_by_its_node_or_the_projects(
    alpha: Node, beta: MeshMember, gamma: MeshMember, project: str
) -> None:
    def holder(name: str) -> Any:
        repos = alpha.call("cacp/project/get", projectId=project)["repos"]
        return next(repo.get("agent_id") for repo in repos if repo["name"] == name)

    own = gamma.repo(project, SOME_TIME)
    gamma.project(project, stamp=SOME_TIME - 1, repos=[own])
    assert holder("gamma") == gamma.agent
    beta.project(project, stamp=SOME_TIME - 1, repos=[beta.repo(project, SOME_TIME)])
    assert release(gamma, project, beta, SOME_TIME + 1)["status"] == "updated", "kept"
    assert holder("beta") == beta.agent, "without effect: gamma has no claim of beta"
    assert release(gamma, project, gamma, SOME_TIME + 1)["status"] == "updated"
    assert holder("gamma") is None
    gamma.project(project, stamp=SOME_TIME - 1, repos=[own])
    assert holder("gamma") is None, "the claim that was released is no news"
    later = own | {"claims": [gamma.claim(project, SOME_TIME + 2)]}
    gamma.project(project, stamp=SOME_TIME - 1, repos=[later])
    assert holder("gamma") == gamma.agent, "it has joined again"
    assert release(beta, project, gamma, SOME_TIME + 3)["status"] == "updated"
    assert holder("gamma") is None
    assert release(beta, project, gamma, SOME_TIME + 1)["status"] == "skipped", "an earlier one"
    state = pulled(gamma, project)["cacp/project/syncState"]["state"]
    assert sorted(
        (ended["released_at"], ended["signature"]["node"]) for ended in state["releases"]
    ) == [(SOME_TIME + 1, gamma.agent)] * 2 + [(SOME_TIME + 3, beta.agent)]
    unclaimed = release(beta, project, MeshMember(alpha, "nobody"), SOME_TIME)
    assert "no claim on it" in unclaimed["reason"]


def test_a_release_counts_if_its_node_wrote_it_before_a_ban(
    alpha: Node, beta: MeshMember, project: str
) -> None:
    """Others pass on what the node signed, with the rest of the project's state."""
    mal = MeshMember(alpha, "mal").register()
    mal.project(project, stamp=SOME_TIME - 1, repos=[mal.repo(project, SOME_TIME)])
    banned = cacp("peers", "ban", mal.agent, db=str(alpha.db), agent_id=ALPHA)
    assert banned.exit_code == 0, banned.stderr
    late = release(mal, project, mal, time.time_ns() // 1000 + 1_000_000, told_by=beta)
    assert (late["status"], "after a ban" in late["reason"]) == ("skipped", True)
    early = release(mal, project, mal, SOME_TIME + 1, told_by=beta)
    assert early["status"] == "updated"
