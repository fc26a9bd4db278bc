"""Nodes that work apart and end alike (design §7)."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.mesh import (
    CONTENT,
    Mesh,
    equal,
    holds,
    join,
    peers,
    project,
    propose,
    state,
    status,
)
from tests.support.node import Node
from tests.support.waiting import eventually


def test_three_nodes_agree_on_a_contract(mesh: Mesh) -> None:
    """One mesh token and `--peer` is all that a mesh needs."""
    alpha, beta, gamma = mesh.three()
    shared = project(alpha, agreementPolicy="all")
    join(beta, shared, "beta")
    join(gamma, shared, "gamma")
    eventually(lambda: equal(alpha, beta, gamma))
    contract = propose(alpha, shared)
    eventually(lambda: status(beta, shared, contract) == "proposed")
    eventually(lambda: status(gamma, shared, contract) == "proposed")
    for node in (beta, gamma):
        node.call("cacp/contract/respond", projectId=shared, contractId=contract, action="agree")
    for node in (alpha, beta, gamma):
        eventually(lambda node=node: status(node, shared, contract) == "agreed")  # type: ignore[misc]
    for node in (alpha, beta, gamma):
        node.call("cacp/implementation/complete", projectId=shared, contractId=contract, files=[])
    eventually(lambda: status(gamma, shared, contract) == "implemented")
    asked = beta.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
    eventually(lambda: equal(alpha, beta, gamma))
    packets = alpha.call("cacp/context/list", projectId=shared)["packets"]
    assert [one["packet_id"] for one in packets] == [asked["packetId"]]


def test_a_node_that_was_down_catches_up(mesh: Mesh) -> None:
    """A peer is never forgotten because it was down."""
    alpha, beta, gamma = mesh.three()
    shared = project(alpha)
    join(beta, shared, "beta")
    eventually(lambda: equal(alpha, beta, gamma))
    gamma.stop()
    made = [propose(alpha, shared, name=f"contract {number}") for number in range(30)]
    eventually(lambda: status(beta, shared, made[0]) == "proposed")
    beta.call("cacp/contract/respond", projectId=shared, contractId=made[0], action="agree")
    eventually(lambda: equal(alpha, beta))
    gamma.start()
    eventually(lambda: equal(alpha, beta, gamma))
    assert status(gamma, shared, made[0]) == "agreed"


def test_changes_pass_through_a_node_between(mesh: Mesh) -> None:
    """A–B–C: what came by sync isn't echoed, and still arrives, vouched for by its author."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    gamma = mesh.add("gamma", beta)
    eventually(lambda: len(peers(beta)) == 2)
    shared = project(alpha)
    join(gamma, shared, "gamma")
    contract = propose(alpha, shared)
    eventually(lambda: status(gamma, shared, contract) == "proposed")
    gamma.call("cacp/contract/respond", projectId=shared, contractId=contract, action="agree")
    eventually(lambda: status(alpha, shared, contract) == "agreed")
    eventually(lambda: equal(alpha, beta, gamma))
    assert len(peers(alpha)) == len(peers(gamma)) == 1


def test_versions_written_apart_are_both_kept(mesh: Mesh) -> None:
    """Conflicts are kept, with both contents, and told to both repos."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    shared = project(alpha)
    join(beta, shared, "beta")
    contract = propose(alpha, shared)
    both = ["alpha", "beta"]
    other = propose(alpha, shared, parties=both)
    eventually(lambda: equal(alpha, beta) and status(beta, shared, other) is not None)
    at = {"projectId": shared, "contractId": contract}
    same: dict[str, Any] = {"projectId": shared, "contractId": other, "content": {"path": "/same"}}
    beta.stop()
    alpha.call("cacp/contract/update", **at, content={"path": "/alpha"})
    alpha.call("cacp/contract/update", **same, parties=both)
    alpha.stop()
    beta.start()
    beta.call("cacp/contract/update", **at, content={"path": "/beta"})
    beta.call("cacp/contract/update", **same, parties=[*both, "gamma"])
    alpha.start()
    eventually(lambda: equal(alpha, beta))
    for node in (alpha, beta):
        [lost] = node.call("cacp/contract/conflicts", **at)["conflicts"]
        assert (lost["content"], lost["currentContent"]) == ({"path": "/alpha"}, {"path": "/beta"})
        told = node.query("SELECT entity_id FROM changes WHERE entity = 'conflict'")
        assert told[0] == (contract,)
        [lost] = node.call("cacp/contract/conflicts", projectId=shared, contractId=other)[
            "conflicts"
        ]
        assert lost["content"] == lost["currentContent"]
        assert (len(lost["parties"]), len(lost["currentParties"])) == (3, 2)
    gamma = mesh.add("gamma", alpha, beta)
    eventually(lambda: equal(alpha, beta, gamma))
    for ask in (
        lambda node: node.get("/mesh").json()["conflicts"],
        lambda node: node.call("cacp/contract/conflicts", projectId=shared),
        lambda node: node.call("cacp/contract/get", **at),
        lambda node: node.call("cacp/project/get", projectId=shared),
    ):
        # Who heard of it late holds the same, and so answers the same.
        assert ask(alpha) == ask(beta) == ask(gamma)  # type: ignore[no-untyped-call]
    assert gamma.get("/mesh").json()["conflicts"] == 2


def test_of_two_claims_made_apart_the_earlier_holds(mesh: Mesh) -> None:
    """Design §5: the other becomes a conflict record."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    shared = project(alpha)
    eventually(lambda: holds(beta, shared) and equal(alpha, beta))
    beta.stop()
    alpha.call("cacp/project/join", projectId=shared, repoName="gamma")
    alpha.stop()
    beta.start()
    beta.call("cacp/project/join", projectId=shared, repoName="gamma")
    contract = propose(beta, shared)
    alpha.start()
    eventually(lambda: equal(alpha, beta))
    repos = beta.call("cacp/project/get", projectId=shared)["repos"]
    assert next(one["agent_id"] for one in repos if one["name"] == "gamma") == (
        "aid://example.com/alpha@1.0.0"
    )
    assert status(alpha, shared, contract) == "proposed", "what the loser wrote is kept"


def test_a_node_killed_at_any_moment_loses_nothing(mesh: Mesh) -> None:
    """kill -9 between commit and send, and between apply and answer."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    shared = project(alpha)
    join(beta, shared, "beta")
    made = []
    for number in range(6):
        made.append(propose(alpha, shared, name=f"contract {number}"))
        # What alpha has just acknowledged is on its way, or being applied by beta.
        victim = alpha if number % 2 else beta
        victim.kill()
        victim.start()
    eventually(lambda: equal(alpha, beta))
    listed = beta.call("cacp/contract/list", projectId=shared)["contracts"]
    assert sorted(one["contractId"] for one in listed) == sorted(made)


@pytest.mark.sqlite
def test_a_node_restored_from_a_backup_gets_back_what_it_had_sent(
    mesh: Mesh, tmp_path: Path
) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    shared = project(alpha)
    eventually(lambda: equal(alpha, beta))
    alpha.stop()
    shutil.copy(alpha.db, tmp_path / "yesterday.db")
    alpha.start()
    lost = propose(alpha, shared)
    eventually(lambda: equal(alpha, beta))
    alpha.kill()
    for leftover in alpha.folder.glob("node.db*"):
        leftover.unlink()
    shutil.copy(tmp_path / "yesterday.db", alpha.db)
    alpha.start()
    again = propose(alpha, shared, content=CONTENT | {"path": "/again"})
    eventually(lambda: equal(alpha, beta))
    assert [status(beta, shared, one) for one in (lost, again)] == ["proposed", "proposed"]
    assert "/again" in state(alpha)


def test_a_caller_never_waits_for_a_peer(mesh: Mesh) -> None:
    """Design §7: a dead peer costs callers nothing; `GET /peers` says that it is down."""
    alpha = mesh.add("alpha")
    beta: Node = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == 1)
    beta.kill()
    shared = project(alpha)
    propose(alpha, shared)
    eventually(lambda: (peers(alpha)[0].get("sync") or {}).get("health") == "down")
    [found] = peers(alpha)
    assert found["sync"]["backlog"] == 2
    assert found["sync"]["lastError"]
    assert alpha.log.count('"peer_down"') == 1, "one line, and not one for each retry"
    beta.start()
    eventually(lambda: equal(alpha, beta) and peers(alpha)[0]["sync"]["health"] == "up")
