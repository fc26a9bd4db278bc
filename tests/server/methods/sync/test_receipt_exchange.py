"""cacp/receipt/sync: who may send receipts (N2)."""

import pytest

from tests.support.mesh_member import ALPHA, MeshMember
from tests.support.node import Node, bearer


@pytest.mark.parametrize("by", ["another", "agent", "nobody"])
def test_only_a_mesh_node_in_its_own_name_sends_receipts(
    alpha: Node, beta: MeshMember, shared: str, by: str
) -> None:
    source, key, reason = {
        "another": (ALPHA, beta.key, "unknown_peer"),
        "agent": (beta.agent, alpha.key("aid://example.com/agent@1.0.0", "agent"), "not_a_peer"),
        "nobody": (beta.agent, None, "unknown_peer"),
    }[by]
    receipts = {"contract_id": "c", "facts": []}
    params = {"source_agent": source, "projectId": shared, "receipts": receipts}
    body = {"jsonrpc": "2.0", "method": "cacp/receipt/sync", "params": params, "id": 1}
    answer = alpha.http.post("/", json=body, headers=bearer(key)).json()
    assert answer["error"]["data"]["reason"] == reason
