"""What mesh peers send, and what hostile ones try (design §6, §7)."""

import time
from typing import Any
from uuid import uuid4

import pytest

from server.domain.identifiers import repo_id_for
from tests.node import Node, RpcError, bearer
from tests.scenarios.mesh import status
from tests.stranger import ALPHA, SOME_TIME, Stranger, pulled
from tests.waiting import eventually

HOUR = 3_600_000_000
DAY = 24 * HOUR
WRITTEN = ("packets", "contracts", "repo_aliases", "exchanged", "projects")


def proposed(beta: Stranger, project_id: str) -> str:
    contract = str(uuid4())
    result = beta.contract(project_id, contract, beta.fact(contract, beta.version(project_id)))
    assert result == {"status": "created"} | result
    return contract


def test_a_project_and_its_contract_come_and_nothing_comes_twice(
    alpha: Node, beta: Stranger, shared: str
) -> None:
    contract = proposed(beta, shared)
    fact = beta.fact(contract, beta.version(shared))
    assert beta.contract(shared, contract, fact)["status"] == "skipped"
    alpha.call("cacp/contract/respond", projectId=shared, contractId=contract, action="agree")
    assert beta.contract(shared, contract, fact)["status"] == "skipped"
    assert status(alpha, shared, contract) == "agreed"


def test_another_repos_agreement_is_not_forged_by_relay(
    alpha: Node, beta: Stranger, shared: str
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


def test_a_relay_passes_on_what_others_signed(alpha: Node, beta: Stranger, shared: str) -> None:
    contract = proposed(beta, shared)
    alpha.call("cacp/contract/respond", projectId=shared, contractId=contract, action="agree")
    carried = pulled(beta, "contract", shared, contract)["facts"]
    gamma = Stranger(alpha, "gamma").register()
    assert gamma.contract(shared, contract, *carried)["status"] == "skipped"
    moved = str(uuid4())
    result = gamma.contract(shared, moved, *carried)
    assert result["status"] == "skipped", "what was said of one contract is said of no other"
    assert status(alpha, shared, moved) is None


def test_a_fact_changed_on_the_way_does_not_hold(beta: Stranger, shared: str) -> None:
    contract = str(uuid4())
    fact = beta.fact(contract, beta.version(shared))
    fact["fact"] = fact["fact"] | {"content": {"path": "/changed"}}
    result = beta.contract(shared, contract, fact)
    assert "digest" in result["skipped"][0]["reason"]


def test_a_new_agent_has_one_home(alpha: Node, beta: Stranger, shared: str) -> None:
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


def test_a_peer_writes_on_its_own_node(beta: Stranger, shared: str) -> None:
    """This one could not sign in its name: what it wrote here would be refused elsewhere."""
    params = {"projectId": shared, "type": "custom", "name": "n", "content": {}}
    request = {"jsonrpc": "2.0", "method": "cacp/contract/propose", "params": params, "id": 1}
    answer = beta.node.http.post("/", json=request, headers=bearer(beta.key)).json()
    assert answer["error"]["data"]["reason"] == "insufficient_trust"


def test_a_fact_needs_a_claim_on_its_repo(beta: Stranger, shared: str) -> None:
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


def test_a_forged_source_agent_is_refused(beta: Stranger, shared: str) -> None:
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
    alpha: Node, beta: Stranger, shared: str
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


def test_a_claim_is_not_forged(alpha: Node, beta: Stranger, shared: str) -> None:
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


def test_a_stamp_from_the_future_waits_until_it_is_due(
    alpha: Node, beta: Stranger, shared: str
) -> None:
    """Design §7: it neither wins at once nor is lost."""
    contract = proposed(beta, shared)
    ahead = beta.response(shared, "beta", beta.agent, stamp=time.time_ns() // 1000 + DAY + HOUR)
    ahead |= {"action": "request_change"}
    result = beta.contract(shared, contract, beta.fact(contract, ahead))
    assert "deferred" in result["reason"]
    assert status(alpha, shared, contract) == "proposed"
    assert alpha.query("SELECT count(*) FROM set_aside") == [(1,)]
    soon = ahead | {"stamp": time.time_ns() // 1000 + DAY + 2_000_000}
    result = beta.contract(shared, contract, beta.fact(contract, soon))
    assert "deferred" in result["reason"]
    eventually(lambda: alpha.query("SELECT count(*) FROM set_aside") == [(1,)])
    assert status(alpha, shared, contract) == "negotiating"


def test_what_is_deferred_holds_up_nothing_else(alpha: Node, beta: Stranger, shared: str) -> None:
    """Each fact, register and claim is judged alone."""
    contract, now = str(uuid4()), time.time_ns() // 1000
    ahead = beta.response(shared, "beta", beta.agent, stamp=now + 2 * DAY)
    unclaimed = beta.response(shared, "alpha", beta.agent)
    facts = [beta.version(shared), ahead, unclaimed]
    result = beta.contract(shared, contract, *(beta.fact(contract, one) for one in facts))
    assert result["status"] == "created"
    assert {one["kind"] for one in result["skipped"]} == {"claim", "cacp/contract/sync"}
    assert status(alpha, shared, contract) == "proposed"
    claim = beta.claim(shared, now + 2 * DAY)
    repos = pulled(beta, "project", shared, shared)["registers"]["repos"]
    own = next(repo for repo in repos if repo["name"] == "beta")
    beta.project(shared, stamp=now + 2 * DAY, repos=[own | {"claims": [claim]}], status="complete")
    shown = alpha.call("cacp/project/get", projectId=shared)
    assert shown["status"] != "complete"
    [(renewed,)] = alpha.query("SELECT renewed_at FROM repos WHERE repo_id = ?", own["repo_id"])
    assert renewed == now + 2 * DAY
    waits = alpha.query("SELECT count(*) FROM set_aside WHERE params LIKE ?", f"%{shared}%")
    assert waits == [(2,)]
    assert alpha.get("/health").json()["reason"] == "deferred"


def test_what_is_stamped_ahead_is_taken_at_once_and_said_to_be(
    alpha: Node, beta: Stranger, shared: str
) -> None:
    """Whatever explains it: to defer it would hide what others write beside it."""
    contract = proposed(beta, shared)
    now = time.time_ns() // 1000
    for ahead, action in ((3_600, "reject"), (23 * 3_600, "request_change")):
        body = beta.response(shared, "beta", beta.agent, stamp=now + ahead * 1_000_000)
        beta.contract(shared, contract, beta.fact(contract, body | {"action": action}))
    assert status(alpha, shared, contract) == "negotiating"
    beta.project(shared, stamp=now + HOUR, status="implementing")
    alpha.call("cacp/project/updateStatus", projectId=shared, status="integrating")
    beta.project(shared, stamp=now + 23 * HOUR, status="complete")
    [(found,)] = alpha.query("SELECT status FROM projects WHERE project_id = ?", shared)
    assert found == "complete"


def test_what_is_written_after_a_wrong_clock_has_the_time_but_wins(
    alpha: Node, beta: Stranger, shared: str
) -> None:
    """Issue: one bad clock drags nobody's stamps along; a later word still takes its place."""
    seen = time.time_ns() // 1000 + 290_000_000
    beta.project(shared, stamp=seen, status="implementing")
    made = alpha.call("cacp/project/create", name="n", objective="o")["projectId"]
    [(stamp,)] = alpha.query("SELECT stamp FROM projects WHERE project_id = ?", made)
    assert stamp < seen - 200_000_000
    alpha.call("cacp/project/updateStatus", projectId=shared, status="integrating")
    rows = alpha.query("SELECT stamp, status FROM projects WHERE project_id = ?", shared)
    assert rows == [(seen + 1, "integrating")]


def test_the_clock_is_not_dragged_along(alpha: Node, beta: Stranger, shared: str) -> None:
    """What is written next is after what was seen, and what was seen is no more than due."""
    seen = time.time_ns() // 1000 + 60_000_000
    beta.project(shared, stamp=seen, status="implementing")
    alpha.call("cacp/project/updateStatus", projectId=shared, status="integrating")
    [(stamp,)] = alpha.query("SELECT stamp FROM projects WHERE project_id = ?", shared)
    assert seen < stamp < seen + 300_000_000


def test_a_packet_is_its_authors(alpha: Node, beta: Stranger, shared: str) -> None:
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


def test_a_header_is_taken_as_a_whole(alpha: Node, beta: Stranger, shared: str) -> None:
    beta.project(shared, created_at=SOME_TIME - 5, stamp=SOME_TIME + 1)
    [(created_at,)] = alpha.query("SELECT created_at FROM projects WHERE project_id = ?", shared)
    assert created_at == SOME_TIME - 5


def test_a_contract_was_made_when_the_first_node_made_it(
    alpha: Node, beta: Stranger, shared: str
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
    alpha: Node, beta: Stranger, shared: str
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
