"""Receipts between nodes: every node ends with the same, and believes the same (N2)."""

from typing import Any

import pytest

from tests.support.mesh import Mesh, equal, join, project, propose, status
from tests.support.node import Node
from tests.support.runner import COMMIT, Runner
from tests.support.waiting import eventually

Json = dict[str, Any]


def repo_id(node: Node, project_id: str, name: str) -> str:
    repos = node.call("cacp/project/get", projectId=project_id)["repos"]
    return str(next(repo["repo_id"] for repo in repos if repo["name"] == name))


def receipts(node: Node, project_id: str, contract: str) -> Json:
    listed: Json = node.call("cacp/receipt/list", projectId=project_id, contractId=contract)
    return listed


def implemented(nodes: list[Node], shared: str) -> str:
    """A contract that the first provides, and the others consume."""
    alpha, *others = nodes
    contract = propose(alpha, shared, roles={"alpha": "provider"})
    at = {"projectId": shared, "contractId": contract}
    for node in others:
        eventually(lambda node=node: status(node, shared, contract) == "proposed")  # type: ignore[misc]
    others[0].call("cacp/contract/respond", **at, action="agree")
    for node in nodes:
        eventually(lambda node=node: status(node, shared, contract) == "agreed")  # type: ignore[misc]
    for node in nodes:
        node.call("cacp/implementation/complete", **at, commit=COMMIT)
    for node in nodes:
        eventually(lambda node=node: status(node, shared, contract) == "implemented")  # type: ignore[misc]
    return contract


@pytest.fixture
def three(mesh: Mesh) -> tuple[list[Node], str]:
    nodes: list[Node] = list(mesh.three())
    shared = project(nodes[0], verificationPolicy="receipt")
    for node, name in zip(nodes[1:], ("beta", "gamma"), strict=True):
        join(node, shared, name)
    eventually(lambda: equal(*nodes))
    return nodes, shared


def test_what_one_node_records_verifies_on_all(three: tuple[list[Node], str]) -> None:
    nodes, shared = three
    _, beta, gamma = nodes
    contract = implemented(nodes, shared)
    gamma.call(
        "cacp/implementation/verify", projectId=shared, contractId=contract, result="success"
    )
    eventually(lambda: equal(*nodes))
    assert [status(node, shared, contract) for node in nodes] == ["implemented"] * 3
    provider = repo_id(beta, shared, "alpha")
    Runner.on(beta).proves(shared, contract, provider)
    for node in nodes:
        eventually(lambda node=node: status(node, shared, contract) == "verified")  # type: ignore[misc]
    eventually(lambda: equal(*nodes))
    shown = [receipts(node, shared, contract) for node in nodes]
    assert shown[0] == shown[1] == shown[2]
    [receipt] = shown[0]["receipts"]
    assert receipt["node"] == "aid://example.com/beta@1.0.0"
    eventually(lambda: len({node.get("/mesh").json()["digest"] for node in nodes}) == 1)


def test_a_node_that_was_away_ends_with_the_same(three: tuple[list[Node], str]) -> None:
    """By comparison: it heard of none of the receipts when they were recorded."""
    nodes, shared = three
    alpha, beta, gamma = nodes
    contract = implemented(nodes, shared)
    provider = repo_id(alpha, shared, "alpha")
    gamma.stop()
    runner = Runner.on(alpha)
    failed = runner.proves(shared, contract, provider, outcome="regression", exit_code=1)
    assert not failed["proves"]
    other = Runner.on(beta, agent="aid://example.com/other-ci@1.0.0")
    assert other.proves(shared, contract, provider)["proves"]
    eventually(lambda: equal(alpha, beta))
    assert status(alpha, shared, contract) == "implemented", "a failure stands"
    gamma.start()
    eventually(lambda: equal(*nodes))
    assert runner.proves(shared, contract, provider)["contractStatus"] == "verified"
    for node in nodes:
        eventually(lambda node=node: status(node, shared, contract) == "verified")  # type: ignore[misc]
    eventually(lambda: equal(*nodes))


def test_a_failed_round_voids_the_receipts_everywhere(three: tuple[list[Node], str]) -> None:
    nodes, shared = three
    alpha, beta, _ = nodes
    contract = implemented(nodes, shared)
    provider = repo_id(alpha, shared, "alpha")
    Runner.on(alpha).proves(shared, contract, provider)
    eventually(lambda: status(beta, shared, contract) == "verified")
    at = {"projectId": shared, "contractId": contract}
    beta.call("cacp/implementation/verify", **at, result="failure")
    for node in nodes:
        eventually(lambda node=node: status(node, shared, contract) == "agreed")  # type: ignore[misc]
    eventually(lambda: equal(*nodes))
    assert not any(one["proves"] for one in receipts(beta, shared, contract)["receipts"])
