"""Versions and rounds that jump ahead, by a member of the mesh that has its keys (design §7)."""

from typing import Any
from uuid import uuid4

import pytest

from schemas.base import ORDINAL_MAX
from server.domain.canonical import digest
from server.domain.identifiers import repo_id_for
from tests.support.mesh import Mesh, agent_of, equal, holds, join, peers, project, propose
from tests.support.mesh import status as status_of
from tests.support.mesh_member import CONTENT, SOME_TIME, MeshMember
from tests.support.node import Node
from tests.support.waiting import eventually


def place(version: int = 1, content: Any = CONTENT) -> dict[str, Any]:
    return {"version": version, "digest": digest(content), "stamp": SOME_TIME + 5}


def work(who: MeshMember, project_id: str, kind: str, **more: Any) -> dict[str, Any]:
    author = {"repo_id": repo_id_for(project_id, who.name), "agent_id": who.agent}
    return {"kind": kind, **place(), **author} | more


def verification(who: MeshMember, project_id: str, **more: Any) -> dict[str, Any]:
    made = work(who, project_id, "verification", result="failure", notes=None, details=None)
    return made | more


def opened(number: int, **more: Any) -> dict[str, Any]:
    return {"kind": "round", **place(), "number": number} | more


def line(beta: MeshMember, project_id: str, versions: int) -> list[dict[str, Any]]:
    """A contract's versions, each of which follows on the one before."""
    contents = [CONTENT, *({"path": f"/{number}"} for number in range(2, versions + 1))]
    parents = [None, *map(digest, contents)]
    return [
        beta.version(project_id, SOME_TIME + number)
        | {"version": number, "content": content, "digest": digest(content), "parent": parent}
        for number, (content, parent) in enumerate(zip(contents, parents, strict=False), 1)
    ]


def deferred(node: Node) -> int:
    return int(node.get("/mesh").json()["deferred"])


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1)])
def test_versions_that_come_in_any_order_are_all_taken(
    alpha: Node, beta: MeshMember, shared: str, order: tuple[int, ...]
) -> None:
    """One message each: what comes too early waits for the rest, and is not lost."""
    contract, versions = str(uuid4()), line(beta, shared, 3)
    before = deferred(alpha)
    for at in order:
        beta.contract(shared, contract, beta.fact(contract, versions[at]))

    def current() -> int:
        if status_of(alpha, shared, contract) is None:
            return 0
        asked = {"projectId": shared, "contractId": contract}
        return int(alpha.call("cacp/contract/get", **asked)["version"])

    eventually(lambda: current() == 3)
    eventually(lambda: deferred(alpha) == before)


def test_a_jump_is_named_and_held_once(alpha: Node, beta: MeshMember, shared: str) -> None:
    contract = str(uuid4())
    beta.contract(shared, contract, beta.fact(contract, beta.version(shared)))
    before = deferred(alpha)
    jumps = [
        opened(ORDINAL_MAX),
        beta.version(shared) | place(ORDINAL_MAX) | {"parent": digest(CONTENT)},
        verification(beta, shared, round=ORDINAL_MAX),
    ]
    for _ in range(2):
        facts = [beta.fact(contract, one) for one in jumps]
        result = beta.contract(shared, contract, *facts)
        assert result["status"] == "skipped"
        reasons = sorted(one["reason"] for one in result["skipped"])
        assert len(reasons) == 3
        assert all(one.startswith("deferred: ") for one in reasons)
        assert any(f"follows on version {ORDINAL_MAX - 1}" in one for one in reasons)
    assert deferred(alpha) == before + 1, "signed anew it is the same"
    found = alpha.call("cacp/contract/get", projectId=shared, contractId=contract)
    assert (found["version"], found["status"]) == (1, "proposed")


def test_a_round_follows_on_each_failure(alpha: Node, beta: MeshMember, shared: str) -> None:
    contract = str(uuid4())
    facts = [beta.version(shared), verification(beta, shared, round=2), opened(3)]
    beta.contract(shared, contract, *(beta.fact(contract, one) for one in facts))
    kinds = "SELECT kind FROM facts WHERE contract_id = ? ORDER BY kind"
    assert alpha.query(kinds, contract) == [("version",)]
    beta.contract(shared, contract, beta.fact(contract, verification(beta, shared, round=1)))
    both = [("round",), ("verification",), ("verification",), ("version",)]
    eventually(lambda: alpha.query(kinds, contract) == both)


def test_a_member_without_a_part_in_it_writes_nothing_of_a_contract(mesh: Mesh) -> None:
    """Nor does it hold up those who have one."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == 1 and len(peers(beta)) == 1)
    shared = project(alpha)
    join(alpha, shared, "alpha")
    join(beta, shared, "beta")
    contract = propose(alpha, shared, parties=["alpha", "beta"])
    eventually(lambda: status_of(beta, shared, contract) == "proposed")
    current = alpha.call("cacp/contract/get", projectId=shared, contractId=contract)

    gamma = MeshMember(alpha, "gamma").register()
    gamma.project(shared)
    at = {"digest": digest(current["content"]), "stamp": SOME_TIME}
    body = gamma.version(shared) | {"content": {}, "digest": digest({})}
    hostile = [
        body | {"version": 2, "parent": at["digest"]},
        body | {"version": ORDINAL_MAX, "parent": at["digest"]},
        body | {"parties": [repo_id_for(shared, "gamma")]},
        opened(ORDINAL_MAX) | at,
        opened(2) | at,
        verification(gamma, shared, round=1) | at,
    ]
    for one in hostile:
        result = gamma.contract(shared, contract, gamma.fact(contract, one))
        assert result["status"] == "skipped", one
        assert result["skipped"][0]["kind"] == "contract"
    assert "not a party to version 1" in alpha.log
    asked = {"projectId": shared, "contractId": contract}
    alpha.call("cacp/contract/update", **asked, content={"path": "/new"})
    eventually(lambda: holds_version(beta, asked, 2))
    beta.call("cacp/contract/respond", **asked, action="agree")
    eventually(lambda: status_of(alpha, shared, contract) == "agreed")
    eventually(lambda: equal(alpha, beta))
    assert holds(alpha, shared)
    assert agent_of("gamma") == gamma.agent


def holds_version(node: Node, asked: dict[str, str], version: int) -> bool:
    return bool(node.call("cacp/contract/get", **asked)["version"] == version)
