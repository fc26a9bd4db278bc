"""Who vouches for what mesh peers send (design §7)."""

import time
from typing import Any
from uuid import uuid4

from tests.server.methods.sync.test_merge_contract import proposed
from tests.support.mesh import status
from tests.support.mesh_member import ALPHA, MeshMember, pulled
from tests.support.node import Node, bearer


def test_another_repos_agreement_is_not_forged_by_relay(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Design §7: a relay can't forge another repo's agreement."""
    contract = proposed(beta, shared)
    forged = beta.response(shared, "alpha", ALPHA)
    claimed = beta.signed("fact", contract, forged, node=ALPHA)
    for fact in (beta.fact(contract, forged), {"fact": forged, "signature": claimed}):
        result = beta.contract(shared, contract, fact)
        assert (result["status"], len(result["skipped"])) == ("skipped", 1)
    assert status(alpha, shared, contract) == "proposed"
    named = [line for line in alpha.log.splitlines() if contract in line]
    assert len(named) == 2, "each is named in the log, once"
    beta.contract(shared, contract, beta.fact(contract, forged))
    assert len([line for line in alpha.log.splitlines() if contract in line]) == 2


def test_a_relay_passes_on_what_others_signed(alpha: Node, beta: MeshMember, shared: str) -> None:
    contract = proposed(beta, shared)
    alpha.call("cacp/contract/respond", projectId=shared, contractId=contract, action="agree")
    carried = pulled(beta, "contract", shared, contract)["facts"]
    gamma = MeshMember(alpha, "gamma").register()
    assert gamma.contract(shared, contract, *carried)["status"] == "skipped"
    moved = str(uuid4())
    result = gamma.contract(shared, moved, *carried)
    assert result["status"] == "skipped", "what was said of one contract is said of no other"
    assert status(alpha, shared, moved) is None


def test_a_fact_changed_on_the_way_does_not_hold(beta: MeshMember, shared: str) -> None:
    contract = str(uuid4())
    fact = beta.fact(contract, beta.version(shared))
    fact["fact"] = fact["fact"] | {"content": {"path": "/changed"}}
    result = beta.contract(shared, contract, fact)
    assert "digest" in result["skipped"][0]["reason"]


def test_a_new_agent_has_one_home(alpha: Node, beta: MeshMember, shared: str) -> None:
    """An agent that alpha's node serves is spoken for by no other node."""
    agent = "aid://example.com/served@1.0.0"
    alpha.key(agent, "served")
    repo = {"name": "served", "role": "service", "language": "python"}
    alpha.call("cacp/project/addRepo", projectId=shared, repo=repo)
    key = alpha.key(agent, "served")
    alpha.call("cacp/project/join", key=key, projectId=shared, repoName="served")
    contract = proposed(beta, shared)
    result = beta.contract(
        shared, contract, beta.fact(contract, beta.response(shared, "served", agent))
    )
    assert "doesn't speak for" in result["skipped"][0]["reason"]


def test_a_peer_writes_on_its_own_node(beta: MeshMember, shared: str) -> None:
    """This one could not sign in its name: what it wrote here would be refused elsewhere."""
    params = {"projectId": shared, "type": "custom", "name": "n", "content": {}}
    request = {"jsonrpc": "2.0", "method": "cacp/contract/propose", "params": params, "id": 1}
    answer = beta.node.http.post("/", json=request, headers=bearer(beta.key)).json()
    assert answer["error"]["data"]["reason"] == "insufficient_trust"


def test_a_claim_is_not_forged(alpha: Node, beta: MeshMember, shared: str) -> None:
    """Nor does a later claim take a repo: it is kept, and told (design §5)."""
    forged = beta.claim(shared, 1, "alpha") | {"agent_id": ALPHA}
    repos = pulled(beta, "project", shared, shared)["registers"]["repos"]
    of_alpha = next(repo for repo in repos if repo["name"] == "alpha")
    for claims in ([forged], [beta.claim(shared, time.time_ns() // 1000, "alpha")]):
        beta.project(shared, repos=[of_alpha | {"claims": claims}])
        whole = alpha.call("cacp/project/get", projectId=shared)
        assert {repo["agent_id"] for repo in whole["repos"]} == {ALPHA, beta.agent}
        held = next(repo for repo in whole["repos"] if repo["name"] == "alpha")
        assert held["agent_id"] == ALPHA
    told = alpha.query("SELECT outcome FROM changes WHERE entity = 'conflict'")
    assert ("claim_lost",) in told


def test_a_packet_is_its_authors(alpha: Node, beta: MeshMember, shared: str) -> None:
    asked = alpha.call("cacp/context/askQuestion", projectId=shared, question="Why?")
    carried = pulled(beta, "context", shared, asked["packetId"])
    packet = carried["packet"] | {"packet_id": "another"}
    result = beta.call(
        "cacp/context/sync", projectId=shared, packet=packet, signature=carried["signature"]
    )
    assert result["status"] == "skipped"
    own: dict[str, Any] = packet | {
        "packet_id": str(uuid4()),
        "from_agent": beta.agent,
        "from_repo": beta.version(shared)["repo_id"],
    }
    signature = beta.signed("packet", shared, own | {"reply_to": None})
    result = beta.call("cacp/context/sync", projectId=shared, packet=own, signature=signature)
    assert result["status"] == "created"
    assert len(alpha.call("cacp/context/list", projectId=shared)["packets"]) == 2
