"""Who is no member of a project changes nothing about it, whatever it signs (design §7)."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.mesh_member import ALPHA, SOME_TIME, TOKEN, MeshMember
from tests.support.node import Node, RpcError


@pytest.fixture
def met(tmp_path: Path) -> Any:
    with Node(tmp_path, repo="alpha", agent_id=ALPHA, mesh_token=TOKEN) as alpha:
        yield alpha, MeshMember(alpha, "beta").register()


def header(node: Node, project: str) -> Any:
    rows = node.query(
        "SELECT name, status, agreement_policy FROM projects WHERE project_id = ?", project
    )
    return rows[0]


def later() -> int:
    return time.time_ns() // 1000 + 60_000_000


def rewritten(by: MeshMember, project: str, **more: Any) -> Any:
    said: Any = {"status": "complete", "agreement_policy": "all", "stamp": later()} | more
    return by.project(project, **said)


def test_who_is_no_member_rewrites_no_header(met: Any) -> None:
    """Neither of a project that somebody has claimed a repo of, nor of one that nobody has."""
    alpha, beta = met
    for repos in ([], [{"name": "alpha", "role": "service", "language": "go"}]):
        made = alpha.call("cacp/project/create", name="P", objective="o", repos=repos)
        project = made["projectId"]
        unsigned: Any = {"signature": None}
        for more in (unsigned, dict[str, Any]()):
            answer = rewritten(beta, project, repos=[], **more)
            assert (answer["status"], header(alpha, project)) == (
                "skipped",
                ("P", "planning", "any"),
            )
            assert "is not a member" in answer["reason"]


def test_who_forges_the_name_of_a_member_is_refused(met: Any) -> None:
    alpha, beta = met
    project = alpha.call("cacp/project/create", name="P", objective="o")["projectId"]
    body: dict[str, Any] = {"name": "Q", "objective": "o", "status": "complete"}
    body |= {"agreement_policy": "all", "created_at": SOME_TIME, "stamp": later()}
    signature = beta.signed("header", project, body) | {"node": ALPHA}
    registers = body | {"repos": [], "signature": signature}
    whole = {"project_id": project, "name": "Q"}
    answer = beta.call("cacp/project/sync", project=whole, registers=registers)
    assert "does not match the key of" in answer["reason"]
    assert header(alpha, project) == ("P", "planning", "any")


def test_a_member_says_how_far_the_project_is(met: Any) -> None:
    """Its claim and its word may come in one message."""
    alpha, beta = met
    repos = [{"name": "beta", "role": "service", "language": "go"}]
    made = alpha.call("cacp/project/create", name="P", objective="o", repos=repos)
    rewritten(beta, made["projectId"], name="P")
    assert header(alpha, made["projectId"]) == ("P", "complete", "all")


def test_a_members_word_takes_the_place_of_anothers(met: Any) -> None:
    """A node that heard of a project from who is no member of it ends as all others do."""
    alpha, beta = met
    gamma = MeshMember(alpha, "gamma").register()
    project = str(alpha.call("cacp/project/create", name="x", objective="o")["projectId"])
    project = project[:-4] + "0000"
    gamma.project(project, stamp=later(), name="Mine", repos=[])
    assert header(alpha, project)[0] == "Mine"
    beta.project(project)
    assert header(alpha, project)[0] == "Theirs"
    gamma.project(project, stamp=later(), name="Mine", repos=[])
    assert header(alpha, project)[0] == "Theirs"


def test_a_node_without_standing_refuses_its_own_agents_too(met: Any) -> None:
    """Else it would show what no other node believes."""
    alpha, beta = met
    project = "0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b"
    beta.project(project)
    with pytest.raises(RpcError, match="Call cacp/project/join first"):
        alpha.call(
            "cacp/project/updateStatus", key=alpha.operator, projectId=project, status="complete"
        )
    alpha.call(
        "cacp/project/addRepo",
        key=alpha.operator,
        projectId=project,
        repo={**REPO, "name": "alpha"},
    )
    alpha.call("cacp/project/join", projectId=project, repoName="alpha")
    alpha.call("cacp/project/updateStatus", projectId=project, status="complete")
    assert header(alpha, project)[1] == "complete"


def test_two_headers_with_one_stamp_are_evidence(met: Any) -> None:
    alpha, beta = met
    project = "0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b"
    beta.project(project)
    beta.project(project, name="Another")
    assert alpha.query("SELECT kind, place FROM equivocations") == [("header", project)]


def called(node: Node, project: str, contract: str) -> Any:
    found = node.call("cacp/contract/get", projectId=project, contractId=contract)
    return found["type"], found["name"], found["created_at"]


def test_what_a_contract_is_called_says_who_began_it(met: Any) -> None:
    """A member of the project, who may answer it, renames it no more than others, dated back."""
    alpha, beta = met
    gamma = MeshMember(alpha, "gamma").register()
    repos = [{**REPO, "name": name} for name in ("alpha", "beta")]
    made = alpha.call("cacp/project/create", name="P", objective="o", repos=repos)
    project = made["projectId"]
    beta.project(project)
    said = {"type": "data_model", "name": "User", "content": {}}
    contract = alpha.call("cacp/contract/propose", projectId=project, **said)["contractId"]
    before = called(alpha, project, contract)
    for by in (beta, gamma):
        for more in ({}, {"headerSignature": None}):
            answer = by.contract(project, contract, type="custom", **more)
            assert "lower authority" in answer["reason"]
            assert called(alpha, project, contract) == before
    forged = {"type": "custom", "name": "User", "stamp": SOME_TIME}
    signature = beta.signed("contract", contract, forged) | {"node": ALPHA}
    answer = beta.contract(project, contract, **forged_as(forged), headerSignature=signature)
    assert "does not match the key of" in answer["reason"]
    assert called(alpha, project, contract) == before


def forged_as(body: dict[str, Any]) -> dict[str, Any]:
    return {"type": body["type"], "name": body["name"], "createdAt": body["stamp"]}


def test_who_began_a_contract_says_what_it_is_called_whoever_came_before(met: Any) -> None:
    """Who passes a contract on may not; its name is nobody's until who began it says it."""
    alpha, beta = met
    gamma = MeshMember(alpha, "gamma").register()
    project, contract = "0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b", "c1"
    beta.project(project)
    fact = beta.fact(contract, beta.version(project))
    keys = {beta.agent: beta.signing.public}
    gamma.contract(project, contract, fact, name="Mine", keys=keys, createdAt=SOME_TIME - 9)
    assert called(alpha, project, contract)[1] == "Mine"
    beta.contract(project, contract)
    assert called(alpha, project, contract)[1] == "Theirs"
    gamma.contract(project, contract, name="Mine", createdAt=SOME_TIME - 9)
    assert called(alpha, project, contract)[1] == "Theirs"
    beta.contract(project, contract, name="Another")
    found = alpha.query("SELECT kind, place, key FROM equivocations")
    assert found == [("contract", contract, contract)]


def test_what_was_heard_of_a_foreign_peer_accuses_nobody(met: Any) -> None:
    """A node that has forgotten a contract hears of it again, perhaps by another name."""
    alpha, beta = met
    project, contract = "0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b", "c1"
    free = beta.repo(project, SOME_TIME, "free")
    beta.project(project, repos=[beta.repo(project, SOME_TIME), free])
    of_it = {"repo_id": free["repo_id"], "parties": [free["repo_id"]]}
    foreign = beta.version(project, agent_id="foreign-1", **of_it)
    fact = beta.fact(contract, foreign, unkeyed=True)
    for name in ("One", "Another"):
        body = {"type": "api_endpoint", "name": name, "stamp": SOME_TIME}
        signature = beta.signed("contract", contract, body, unkeyed=True)
        beta.contract(project, contract, fact, name=name, headerSignature=signature)
    assert called(alpha, project, contract)[1] in ("One", "Another")
    assert alpha.query("SELECT * FROM equivocations") == []


REPO = {"role": "service", "language": "go"}
