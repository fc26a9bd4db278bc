"""What mesh peers send, and what hostile ones try (design §6, §7)."""

from typing import Any
from uuid import uuid4

import pytest

from server.domain.identifiers import repo_id_for
from tests.support.mesh import status
from tests.support.mesh_member import ALPHA, SOME_TIME, MeshMember
from tests.support.node import Node, RpcError

HOUR = 3_600_000_000
DAY = 24 * HOUR
WRITTEN = ("packets", "contracts", "repo_aliases", "exchanged", "projects")


def proposed(beta: MeshMember, project_id: str) -> str:
    contract = str(uuid4())
    result = beta.contract(project_id, contract, beta.fact(contract, beta.version(project_id)))
    assert result == {"status": "created"} | result
    return contract


def test_a_project_and_its_contract_come_and_nothing_comes_twice(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    contract = proposed(beta, shared)
    fact = beta.fact(contract, beta.version(shared))
    assert beta.contract(shared, contract, fact)["status"] == "skipped"
    alpha.call("cacp/contract/respond", projectId=shared, contractId=contract, action="agree")
    assert beta.contract(shared, contract, fact)["status"] == "skipped"
    assert status(alpha, shared, contract) == "agreed"


def test_a_fact_needs_a_claim_on_its_repo(beta: MeshMember, shared: str) -> None:
    contract = proposed(beta, shared)
    body = beta.response(shared, "alpha", beta.agent)
    error = beta.refused(
        "cacp/contract/sync",
        projectId=shared,
        contract={
            "contract_id": contract,
            "type": "custom",
            "name": "n",
            "version": 1,
            "status": "proposed",
            "content": {},
        },
        facts=[beta.fact(contract, body)],
    )
    assert (error.reason, error.data["kind"]) == ("not_found", "claim")


def test_a_forged_source_agent_is_refused(beta: MeshMember, shared: str) -> None:
    packet: dict[str, Any] = {
        "packet_id": "x",
        "from_repo": "x",
        "from_agent": ALPHA,
        "timestamp": "2026-01-01T00:00:00",
        "type": "question",
        "content": {},
    }
    error = beta.refused("cacp/context/sync", source_agent=ALPHA, projectId=shared, packet=packet)
    assert error.reason == "source_agent_mismatch"


def test_a_member_of_the_mesh_sends_no_whole_objects(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Taken at its word, as a foreign peer is, it would be signed by alpha's node, which no third
    node believes: their digests would differ for good."""
    packet = {
        "packet_id": str(uuid4()),
        "from_repo": repo_id_for(shared, "beta"),
        "from_agent": beta.agent,
        "timestamp": "2026-01-01T00:00:00",
        "type": "question",
        "content": {},
    }
    contract = {
        "contract_id": str(uuid4()),
        "type": "custom",
        "name": "n",
        "version": 1,
        "status": "proposed",
        "content": {},
    }
    repo = {"repo_id": "of beta's", "name": "beta"}
    unsigned: list[tuple[str, dict[str, Any]]] = [
        ("cacp/context/sync", {"projectId": shared, "packet": packet}),
        ("cacp/contract/sync", {"projectId": shared, "contract": contract}),
        ("cacp/repo/sync", {"projectId": shared, "repo": repo}),
        ("cacp/project/sync", {"project": {"project_id": shared, "name": "n"}}),
    ]
    before = [alpha.query(f"SELECT * FROM {table}") for table in WRITTEN]
    for method, params in unsigned:
        assert beta.refused(method, **params).reason == "unsigned"
    assert [alpha.query(f"SELECT * FROM {table}") for table in WRITTEN] == before


def test_a_header_is_taken_as_a_whole(alpha: Node, beta: MeshMember, shared: str) -> None:
    beta.project(shared, created_at=SOME_TIME - 5, stamp=SOME_TIME + 1)
    [(created_at,)] = alpha.query("SELECT created_at FROM projects WHERE project_id = ?", shared)
    assert created_at == SOME_TIME - 5


def test_a_contract_was_made_when_the_first_node_made_it(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Nodes that a foreign peer told of one contract: it has one time, and the digests cover it."""
    contract = proposed(beta, shared)

    def digest() -> str:
        return str(alpha.get("/mesh").json()["digest"])

    def created() -> str:
        found = alpha.call("cacp/contract/get", projectId=shared, contractId=contract)
        [listed] = alpha.call("cacp/project/get", projectId=shared)["contracts"]
        assert listed["created_at"] == found["created_at"]
        return str(found["created_at"])

    before = digest()
    fact = beta.fact(contract, beta.version(shared))
    for _ in range(2):
        beta.contract(shared, contract, fact, createdAt=SOME_TIME - 5_000_000)
        assert created() == "2023-11-14T22:13:15.000000+00:00"
    beta.contract(shared, contract, fact, createdAt=SOME_TIME + 5)
    assert created() == "2023-11-14T22:13:15.000000+00:00"
    assert digest() != before
    for never in (-1, 10**18):
        with pytest.raises(RpcError):
            beta.contract(shared, contract, fact, createdAt=never, headerSignature=None)


def test_what_comes_late_is_listed_by_when_it_was_written(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    own = alpha.call("cacp/context/askQuestion", projectId=shared, question="Why?")["packetId"]
    updated = alpha.call("cacp/project/get", projectId=shared)["updated_at"]
    theirs: dict[str, Any] = {
        "packet_id": str(uuid4()),
        "from_repo": beta.version(shared)["repo_id"],
        "from_agent": beta.agent,
        "timestamp": "2024-01-01T00:00:00.000000+00:00",
        "type": "question",
        "content": {},
        "related_contracts": [],
        "reply_to": own,
    }
    signature = beta.signed("packet", shared, theirs)
    beta.call("cacp/context/sync", projectId=shared, packet=theirs, signature=signature)

    def ids(packets: list[Any]) -> list[str]:
        return [one["packet_id"] for one in packets]

    order = [theirs["packet_id"], own]
    whole = alpha.call("cacp/project/get", projectId=shared)
    assert ids(whole["context_history"]) == order
    assert whole["updated_at"] == updated, "nothing in it is newer than it was"
    assert ids(alpha.call("cacp/context/list", projectId=shared)["packets"]) == order
    assert ids(alpha.call("cacp/context/list", projectId=shared, limit=1)["packets"]) == [own]
    thread = alpha.call("cacp/context/getThread", projectId=shared, packetId=own)["thread"]
    assert ids(thread) == order
