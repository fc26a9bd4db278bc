"""Two agents on two nodes finish a contract by what attention tells them (design-next N1)."""

from contextlib import suppress
from typing import Any

from tests.support.mesh import Mesh, equal, join, peers, project, propose
from tests.support.node import Node, RpcError
from tests.support.waiting import eventually

Json = dict[str, Any]


def kinds(node: Node, project_id: str) -> list[str]:
    """What waits for the node's own agent in a project; nothing before it has joined."""
    with suppress(RpcError):
        listed = node.call("cacp/attention/list", projectId=project_id)
        return [item["kind"] for item in listed["items"]]
    return []


def act(node: Node, project_id: str, kind: str, **filled: Any) -> None:
    """Wait for an item, and take the step that it names; then it is gone."""
    eventually(lambda: kind in kinds(node, project_id))
    listed = node.call("cacp/attention/list", projectId=project_id, kinds=[kind])
    item: Json = listed["items"][0]
    step = item["next"][0]
    assert set(filled) <= set(step.get("fill", {}))
    node.call(step["method"], **step["params"], **filled)
    left = node.call("cacp/attention/list", projectId=project_id)["items"]
    assert item["id"] not in [other["id"] for other in left]


def test_a_contract_over_two_nodes_by_attention_alone(mesh: Mesh) -> None:
    """With a change request, a lost race, a question, a failed verification and a kill -9."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    shared = project(alpha)
    join(beta, shared, "beta")
    contract = propose(alpha, shared, parties=["alpha", "beta"])
    act(beta, shared, "respond", action="request_change", suggestedChange={"name": "string"})
    eventually(lambda: kinds(alpha, shared) == ["revise"])
    beta.kill()
    act(alpha, shared, "revise", content={"by": "alpha"}, changeNote="name")
    alpha.kill()
    # While they are apart, both write the second version.
    beta.start()
    both: Json = {"contractId": contract, "parties": ["alpha", "beta"]}
    beta.call("cacp/contract/update", projectId=shared, content={"by": "beta"}, **both)
    alpha.start()
    eventually(lambda: equal(alpha, beta))
    loser, winner = (alpha, beta) if "conflict" in kinds(alpha, shared) else (beta, alpha)
    assert kinds(loser, shared) == ["conflict", "respond"]
    assert kinds(winner, shared) == []
    act(loser, shared, "conflict", action="agree")
    question: Json = {"projectId": shared, "question": "Cents?", "urgent": True}
    winner.call("cacp/context/askQuestion", **question)
    act(loser, shared, "answer", type="decision", content={"answer": "yes"})
    for kind, result in (("implement", "failure"), ("repair", "success")):
        for node in (alpha, beta):
            act(node, shared, kind)
        act(alpha, shared, "verify", result=result)
    eventually(lambda: kinds(alpha, shared) == kinds(beta, shared) == [])
    status = beta.call("cacp/contract/get", projectId=shared, contractId=contract)["status"]
    assert status == "verified"
