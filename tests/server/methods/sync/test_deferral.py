"""A member of the mesh fills nothing by what can't be taken in yet (design §7)."""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from schemas.sync import ContractSyncParams, ProjectSyncParams
from server.methods.sync.deferral import signed_message
from server.store import deferred
from tests.support.mesh_member import ALPHA, SOME_TIME, TOKEN, MeshMember
from tests.support.node import Node

DAY = 86_400_000_000


def packet(beta: MeshMember, project_id: str, **more: Any) -> dict[str, Any]:
    """A packet that is stamped two days ahead."""
    return {
        "packet_id": str(uuid4()),
        "from_repo": beta.version(project_id)["repo_id"],
        "from_agent": beta.agent,
        "timestamp": "2222-01-01T00:00:00.000000+00:00",
        "type": "question",
        "content": {},
        "related_contracts": [],
        "reply_to": None,
    } | more


def test_what_nobody_vouches_for_is_not_kept(alpha: Node, beta: MeshMember, shared: str) -> None:
    """Signature and author first: what is deferred is its author's, if nothing else."""
    count = "SELECT count(*) FROM set_aside"
    before = alpha.query(count)
    contract = str(uuid4())
    ahead = beta.version(shared, stamp=time.time_ns() // 1000 + 2 * DAY)
    other = packet(beta, shared)
    forged = beta.signed("fact", contract, ahead | {"note": "another"})
    result = beta.contract(shared, contract, {"fact": ahead, "signature": forged})
    assert "the signature does not match the key of" in result["reason"]
    given = {"projectId": shared, "packet": other}
    signature = beta.signed("packet", shared, other | {"content": {"another": 1}})
    result = beta.call("cacp/context/sync", **given, signature=signature)
    assert result["status"] == "skipped"
    assert alpha.query(count) == before
    signature = beta.signed("packet", shared, other)
    beta.call("cacp/context/sync", **given, signature=signature)
    [(after,)] = alpha.query(count)
    assert after == before[0][0] + 1


def test_what_waits_is_told_by_what_it_carries(alpha: Node, beta: MeshMember, shared: str) -> None:
    """So that it explains that nodes differ in this, and in nothing else."""
    contract, told = str(uuid4()), packet(beta, shared)
    ahead = beta.version(shared, stamp=time.time_ns() // 1000 + 2 * DAY)
    beta.contract(shared, contract, beta.fact(contract, ahead))
    signature = beta.signed("packet", shared, told)
    beta.call("cacp/context/sync", projectId=shared, packet=told, signature=signature)
    found = alpha.query("SELECT about FROM set_aside WHERE reason = 'stamp'")
    assert {(contract,), (told["packet_id"],)} <= set(found)


def test_a_peer_has_a_thousand_messages_deferred_at_most(tmp_path: Path) -> None:
    settings = {"repo": "alpha", "agent_id": ALPHA, "mesh_token": TOKEN, "requests_per_minute": 0}
    with Node(tmp_path, **settings) as node:
        beta = MeshMember(node, "beta").register()
        shared = str(uuid4())
        beta.project(shared)
        for _ in range(deferred.MESSAGES_MAX + 2):
            one = packet(beta, shared)
            signature = beta.signed("packet", shared, one)
            result = beta.call(
                "cacp/context/sync", projectId=shared, packet=one, signature=signature
            )
        assert "too many of your messages are deferred" in result["reason"]
        assert node.query("SELECT count(*) FROM set_aside") == [(deferred.MESSAGES_MAX,)]
        assert "cacp_deferred_dropped_total 2.0" in node.get("/metrics").text
        assert node.log.count("deferred_full") == 1
        beta.project(shared, stamp=SOME_TIME + 1, status="implementing")
        assert node.call("cacp/project/get", projectId=shared)["status"] == "implementing"


def test_a_message_that_comes_signed_anew_is_the_same(beta: MeshMember) -> None:
    """Its batch is another, and so are the paths in its signatures."""
    ground = "0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b"
    repo = beta.repo(ground, SOME_TIME)
    header: dict[str, Any] = {
        "name": "n",
        "objective": "o",
        "status": "planning",
        "agreement_policy": "any",
    }
    header |= {"created_at": SOME_TIME, "stamp": SOME_TIME}
    seen = set()
    for path in ("", "AAAA"):
        by = beta.signed("header", ground, header, path=path)
        repos = [repo | {"signature": by, "claims": [repo["claims"][0] | {"signature": by}]}]
        registers = {**header, "signature": by, "repos": repos}
        project = {"project_id": ground, "name": "n"}
        params: dict[str, Any] = {
            "source_agent": beta.agent,
            "project": project,
            "registers": registers,
        }
        said = ProjectSyncParams.model_validate(params)
        seen.add(signed_message(beta.agent, "cacp/project/sync", said).identity)
        contract: dict[str, Any] = {"contract_id": "c", "type": "custom", "name": "n", "version": 1}
        contract |= {"status": "proposed", "content": {}}
        more = {"projectId": ground, "contract": contract, "facts": [], "headerSignature": by}
        called = ContractSyncParams.model_validate({"source_agent": beta.agent} | more)
        seen.add(signed_message(beta.agent, "cacp/contract/sync", called).identity)
    assert len(seen) == 2
