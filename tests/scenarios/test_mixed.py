"""A mesh with a foreign peer at one of its nodes (design §8)."""

import json
from typing import Any

from tests.support.foreign_peer import AGENT, REPO, ForeignPeerDouble
from tests.support.mesh import Mesh, equal, holds, join, peers, project, propose, status
from tests.support.node import Node
from tests.support.shared_files import share
from tests.support.waiting import eventually


def test_what_a_peer_of_another_make_says_reaches_nodes_that_do_not_know_it(mesh: Mesh) -> None:
    """Alpha takes it at its word and vouches for that; beta takes alpha's."""
    with ForeignPeerDouble() as double:
        alpha = mesh.add("alpha")
        beta = mesh.add("beta", alpha)
        alpha.stop()
        alpha.settings["peers"] = double.url
        alpha.start()
        eventually(lambda: len(peers(alpha)) == 2)
        shared = project(alpha)
        eventually(lambda: shared in double.projects)
        own = {"name": REPO, "role": "mobile", "language": "swift"}
        alpha.call("cacp/project/addRepo", projectId=shared, repo=own)
        repo = own | {"repo_id": "theirs"}
        claimed = repo | {"assigned_agent": AGENT}
        double.send(alpha.url, "cacp/repo/sync", projectId=shared, repo=claimed)
        join(beta, shared, "beta")
        # Beta binds the repos that it knows.
        eventually(lambda: equal(alpha, beta))
        contract = propose(beta, shared)
        eventually(lambda: double.contract(shared, contract) is not None)
        eventually(
            lambda: bool(alpha.query("SELECT 1 FROM exchanged WHERE entity_id = ?", contract))
        )
        # Skipped, if alpha has just read it of the double's project.
        taken = double.change(alpha.url, shared, contract, status="agreed")
        assert "result" in taken, taken
        eventually(lambda: status(beta, shared, contract) == "agreed")
        eventually(lambda: holds(beta, shared) and equal(alpha, beta))
        assert len(peers(beta)) == 1


def test_a_contract_is_built_and_verified_with_a_peer_of_another_make(mesh: Mesh) -> None:
    """Its work, its failure and its packets reach all nodes; what they do reaches it."""
    with ForeignPeerDouble() as double:
        alpha = mesh.add("alpha", peers=double.url)
        beta = mesh.add("beta", alpha)
        eventually(lambda: len(peers(alpha)) == 2)
        shared, contract = agreed(alpha, beta, double)
        place = {"projectId": shared, "contractId": contract}

        # Both build it: first beta, then the peer, which starts and completes.
        beta.call("cacp/implementation/complete", **place, files=["b.py"])
        eventually(lambda: "complete" in works(double.contract(shared, contract)).values())
        own = next(one["repo_id"] for one in double.repos(shared) if one["name"] == REPO)
        work = {"repo_id": own, "agent_id": AGENT, "status": "in_progress", "plan": "a screen"}
        double.work(alpha.url, shared, contract, work)
        eventually(lambda: work_of(beta, place).get(own) == "in_progress")
        assert status(beta, shared, contract) == "agreed"
        done = work | {"status": "complete", "files": ["Screen.swift"]}
        double.work(alpha.url, shared, contract, done, status="implemented")
        eventually(lambda: status(beta, shared, contract) == "implemented")

        # A verification of ours reaches it; its own, which fails, reaches us.
        beta.call("cacp/implementation/verify", **place, result="success")
        eventually(lambda: (double.contract(shared, contract) or {})["status"] == "verified")
        eventually(lambda: exchanged(alpha, contract, "verified"))
        theirs = double.contract(shared, contract)
        assert theirs is not None
        revised = [one | {"status": "needs_revision"} for one in theirs["implementations"]]
        double.change(alpha.url, shared, contract, status="agreed", implementations=revised)
        eventually(lambda: status(beta, shared, contract) == "agreed")
        eventually(lambda: set(work_of(beta, place).values()) == {"needs_revision"})

        # What its agent says arrives at a node that it doesn't know, in its name, and once.
        for _ in range(2):
            told = double.say(alpha.url, shared, "ctx-1", {"question": "Which colour?"})
            assert "result" in told, told
        eventually(lambda: authors(beta, shared) == [AGENT])
        eventually(lambda: equal(alpha, beta))


def agreed(alpha: Node, beta: Node, double: ForeignPeerDouble) -> tuple[str, str]:
    """A project of beta and the peer, with beta's contract that the peer has agreed to."""
    repos = [
        {"name": "beta", "role": "service", "language": "python"},
        {"name": REPO, "role": "mobile", "language": "swift"},
    ]
    made = alpha.call("cacp/project/create", name="Mixed", objective="o", repos=repos)
    shared = str(made["projectId"])
    eventually(lambda: shared in double.projects)
    theirs = next(one for one in double.repos(shared) if one["name"] == REPO)
    claimed = theirs | {"assigned_agent": AGENT}
    double.send(alpha.url, "cacp/repo/sync", projectId=shared, repo=claimed)
    join(beta, shared, "beta")
    eventually(lambda: equal(alpha, beta))
    contract = propose(beta, shared)
    eventually(lambda: double.contract(shared, contract) is not None)
    eventually(lambda: exchanged(alpha, contract, "proposed"))
    double.change(alpha.url, shared, contract, status="agreed")
    eventually(lambda: status(beta, shared, contract) == "agreed")
    return shared, contract


def exchanged(node: Node, contract: str, status: str) -> bool:
    """Whether the node knows that the peer has this status of a contract."""
    found = node.query("SELECT document FROM exchanged WHERE entity_id = ?", contract)
    return any(json.loads(document)["last"]["status"] == status for (document,) in found)


def works(contract: dict[str, Any] | None) -> dict[str, str]:
    found = contract["implementations"] if contract else []
    return {one["repo_id"]: one["status"] for one in found}


def work_of(node: Node, place: dict[str, str]) -> dict[str, str]:
    return works(node.call("cacp/contract/get", **place))


def authors(node: Node, project_id: str) -> list[str]:
    listed = node.call("cacp/context/list", projectId=project_id)["packets"]
    return [one["from_agent"] for one in listed]


def test_a_peer_of_another_make_hears_nothing_of_files(mesh: Mesh) -> None:
    """It doesn't know them; all else goes on."""
    with ForeignPeerDouble() as double:
        alpha = mesh.add("alpha", peers=double.url)
        eventually(lambda: len(peers(alpha)) == 1)
        shared = project(alpha)
        share(alpha, shared, b"logo")
        alpha.call("cacp/file/request", projectId=shared, description="d")
        contract = propose(alpha, shared)
        eventually(lambda: double.contract(shared, contract) is not None)
        eventually(lambda: peers(alpha)[0]["sync"]["backlog"] == 0)
        assert not [method for method in double.calls if "file" in method]
