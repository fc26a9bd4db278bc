"""Steps of handoffs by agents of other nodes, and what hostile peers try (acp-canonical §7.2,
§12.1)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from uuid_utils import uuid7

from tests.support.in_process_node import package
from tests.support.mail_agent import MailAgent, agent
from tests.support.mesh_member import ALPHA, BOB, GUS, TOKEN, MeshMember
from tests.support.node import Node, RpcError

BEA = "aid://example.com/bea@1.0.0"
HANA = "aid://example.com/hana@1.0.0"
BETA = "aid://example.com/beta"
HANDOFF = str(uuid7())


@pytest.fixture(scope="module")
def beta(alpha: Node) -> MeshMember:
    """A peer at which Bob and Bea are at home, and which nothing reaches."""
    beta = MeshMember(alpha, "beta").register()
    beta.lists(beta.agent, BOB, BEA)
    return beta


def offered(ann: MailAgent, **changes: Any) -> str:
    """A handoff by Ann to Bob."""
    whole = package(f"task-{uuid7()}", **changes)
    made = ann.call("handoff", action="initiate", to=BOB, reason="r", package=whole)
    return str(made["handoff"]["handoffId"])


def step(
    peer: MeshMember, action: str, handoff: str, by: str = BOB, *, human: bool = False, **given: Any
) -> Any:
    call = {"action": action, "handoff_id": handoff} | given
    return peer.call("acp/sync/handoff", agent=by, call=call, human=human)


def taken(peer: MeshMember, action: str, handoff: str, **given: Any) -> str:
    """The status after a step of Bob's."""
    return str(step(peer, action, handoff, **given)["answer"]["handoff"]["status"])


def audited(node: Node, handoff: str) -> list[tuple[Any, ...]]:
    rows = node.query(
        "SELECT actor, action, outcome, detail FROM acp_audit"
        " WHERE message_id = ? AND detail LIKE '%vouchedBy%' ORDER BY seq",
        handoff,
    )
    return [(*row[:3], json.loads(row[3])) for row in rows]


def test_an_agent_takes_its_steps_by_its_home(
    alpha: Node, beta: MeshMember, ann: MailAgent
) -> None:
    handoff = offered(ann)
    shown = step(beta, "get", handoff)["answer"]
    assert shown["package"]["task"]["title"] == "Move the login to tokens"
    assert taken(beta, "accept", handoff, package_hash=shown["handoff"]["packageHash"]) == (
        "accepted"
    )
    assert taken(beta, "accept", handoff) == "accepted", "an answer that was lost is had again"
    assert taken(beta, "complete", handoff, summary="done") == "completed"
    again = step(beta, "complete", handoff, summary="done")["refusal"]
    assert (again["kind"], again["data"]["from"]) == ("IllegalTransition", "completed")
    types = [(one["type"], one["from"]) for one in ann.inbox()["messages"]]
    assert types == [("handoff.accept", BOB), ("handoff.complete", BOB)]
    closed = ann.call("handoff", action="close", handoff_id=handoff)
    assert closed["handoff"]["status"] == "closed"
    assert audited(alpha, handoff) == [
        (BOB, "acp/handoff", outcome, {"step": step, "vouchedBy": "aid://example.com/beta"} | more)
        for outcome, step, more in (
            ("accepted", "accept", {}),
            ("accepted", "accept", {}),
            ("accepted", "complete", {}),
            ("refused", "complete", {"reason": "illegal_transition"}),
        )
    ]


def test_a_node_speaks_for_its_own_agents_only(
    alpha: Node, beta: MeshMember, gamma: MeshMember, ann: MailAgent
) -> None:
    """§12.1: neither for those of a third node, nor for agents here, nor for this node."""
    handoff = offered(ann)
    for peer, speaker in ((gamma, BOB), (beta, ann.id), (beta, GUS), (beta, ALPHA), (beta, "who")):
        for action in ("accept", "get"):
            with pytest.raises(RpcError) as refused:
                step(peer, action, handoff, by=speaker)
            assert (refused.value.code, refused.value.reason) == (-32003, "not_its_home")
    call = {"action": "get", "handoff_id": handoff}
    with pytest.raises(RpcError) as own:
        alpha.call("acp/sync/handoff", source_agent=ALPHA, agent=ann.id, call=call)
    assert own.value.reason == "unknown_peer"
    with pytest.raises(RpcError) as other:
        ann.call("sync/handoff", source_agent=beta.agent, agent=BOB, call=call)
    assert other.value.reason == "not_a_peer"
    assert ann.call("handoff", action="get", handoff_id=handoff)["handoff"]["status"] == "proposed"
    outcomes = alpha.query("SELECT outcome FROM acp_audit WHERE actor = ?", gamma.agent)
    assert ("refused",) in outcomes


def test_the_wrong_party_is_refused_as_it_is_here(beta: MeshMember, ann: MailAgent) -> None:
    handoff = offered(ann)
    with pytest.raises(RpcError) as local:
        ann.call("handoff", action="accept", handoff_id=handoff)
    there = step(beta, "close", handoff)["refusal"]
    assert there["kind"] == "Forbidden"
    assert there["data"]["reason"] == local.value.reason == "wrong_party"
    stranger = step(beta, "accept", handoff, by=BEA)["refusal"]
    assert (stranger["kind"], stranger["data"]["reason"]) == ("NotFound", "not_found")


def test_who_is_a_human_no_peer_may_say_unasked(
    alpha: Node, beta: MeshMember, ann: MailAgent
) -> None:
    """§12.8: by default an approval by a human of another node is refused, and says where to."""
    handoff = offered(ann, policy={"requires_human_approval": True})
    assert taken(beta, "accept", handoff) == "validating"
    plain = step(beta, "approve", handoff)["refusal"]
    assert plain["data"]["reason"] == "human_needed"
    for speaker, one in ((BOB, handoff), (BEA, handoff), (BEA, str(uuid7()))):
        claimed = step(beta, "approve", one, by=speaker, human=True)["refusal"]
        assert claimed["kind"] == "Forbidden"
        assert claimed["data"] == {
            "reason": "human_elsewhere",
            "node": "aid://example.com/alpha",
        }, "whether there is such a handoff is not told"
        assert "Approve at aid://example.com/alpha" in claimed["message"]
    why = {"code": "other", "detail": "no"}
    unheard = step(beta, "reject", handoff, by=BEA, human=True, **why)["refusal"]
    assert unheard["data"]["reason"] == "human_elsewhere"
    assert alpha.query(
        "SELECT human_approval FROM handoff_control WHERE handoff_id = ?", handoff
    ) == [(None,)]
    told = ann.call("handoff", action="get", handoff_id=handoff)["handoff"]
    assert (told["status"], told["waitsFor"]) == ("validating", ["human_approval"])


@pytest.fixture
def trusting(tmp_path: Path) -> Iterator[Node]:
    """A node whose operator takes Beta's word on who is a human there."""
    settings = {"repo": "alpha", "agent_id": ALPHA, "mesh_token": TOKEN}
    with Node(tmp_path, acp_human_nodes=f"{BETA}@1.0.0", **settings) as node:
        yield node
        assert "Traceback" not in node.log


def test_an_operator_names_the_nodes_that_vouch_for_humans(trusting: Node) -> None:
    """Such a node vouches for humans that are at home there, and no other node for any."""
    beta, gamma = MeshMember(trusting, "beta").register(), MeshMember(trusting, "gamma").register()
    beta.lists(beta.agent, BOB, HANA)
    gamma.lists(gamma.agent, GUS)
    ann, boss = agent(trusting, "ann"), agent(trusting, "boss", human=True)
    handoff = offered(ann, policy={"requires_human_approval": True})
    assert taken(beta, "accept", handoff) == "validating"

    stolen = [(gamma, HANA), (beta, boss.id), (beta, GUS), (beta, ALPHA)]
    for peer, speaker in stolen:
        with pytest.raises(RpcError) as refused:
            step(peer, "approve", handoff, by=speaker, human=True)
        assert (refused.value.code, refused.value.reason) == (-32003, "not_its_home")
    made_up = step(gamma, "approve", handoff, by=GUS, human=True)["refusal"]
    assert made_up["data"]["reason"] == "human_elsewhere"
    no_human = step(beta, "approve", handoff, by=HANA)["refusal"]
    assert no_human["data"]["reason"] == "not_found"
    assert ann.call("handoff", action="get", handoff_id=handoff)["handoff"]["status"] == (
        "validating"
    )

    done = step(beta, "approve", handoff, by=HANA, human=True)["answer"]["handoff"]
    assert done["status"] == "accepted"
    ((approval,),) = trusting.query("SELECT human_approval FROM handoff_control")
    assert approval == HANA
    said = audited(trusting, handoff)
    assert (HANA, "acp/handoff", "accepted", {"step": "approve", "vouchedBy": BETA}) in said
    ordinary = offered(ann)
    unseen = step(beta, "get", ordinary, by=HANA, human=True)["refusal"]
    assert unseen["data"]["reason"] == "not_found", "what needs no human is not for humans to see"


def test_a_member_approves_by_its_home(alpha: Node, beta: MeshMember, ann: MailAgent) -> None:
    """§8.4: what comes into a teamspace from outside, by a member at home on another node."""
    team = f"crew-{uuid7()}"
    lead = agent(alpha, "lead")
    lead.call("team", action="create", team=team, name="Crew")
    for member, role in ((BOB, "executor"), (BEA, "integrator")):
        lead.call("team", action="addMember", team=team, agent_id=member, role=role)
    made = ann.call(
        "handoff",
        action="initiate",
        to=BOB,
        reason="r",
        team=team,
        package=package(f"task-{uuid7()}"),
    )
    handoff = str(made["handoff"]["handoffId"])
    assert taken(beta, "accept", handoff) == "validating"
    refused = step(beta, "approve", handoff)["refusal"]
    assert refused["data"]["reason"] == "role_authority"
    done = step(beta, "approve", handoff, by=BEA, human=True)["answer"]["handoff"]
    assert (done["status"], done["waitsFor"]) == ("accepted", [])


@pytest.mark.parametrize("call", [{"action": "list"}, {"action": "close"}])
def test_what_names_no_handoff_is_not_taken(beta: MeshMember, call: dict[str, Any]) -> None:
    refused = beta.refused("acp/sync/handoff", agent=BOB, call=call)
    assert refused.code == -32602


def test_a_handoff_of_another_node_is_asked_for_there(
    alpha: Node, beta: MeshMember, ann: MailAgent
) -> None:
    """The offer comes as mail; a step while its node is away changes nothing, and is not passed on
    for another node's agent."""
    handoff, task = str(uuid7()), f"task-{uuid7()}"
    payload = {"summary": "s", "handoff_id": handoff, "task_id": task}
    letter = beta.letter(BOB, ann.id, type="handoff.initiate", payload=payload)
    assert beta.brings(letter)["error"] is None
    for action in ("get", "accept"):
        with pytest.raises(RpcError) as away:
            ann.call("handoff", action=action, handoff_id=handoff)
        assert (away.value.code, away.value.reason) == (-32000, "node_away")
        assert away.value.data["node"] == "aid://example.com/beta"
        assert away.value.data["mayHaveHappened"] is False
        assert "Server error" not in str(away.value), "it is no fault of this node"
    assert alpha.query("SELECT count(*) FROM acp_audit WHERE actor = ?", ann.id) == [(0,)]
    assert alpha.query("SELECT count(*) FROM handoffs WHERE id = ?", handoff) == [(0,)]
    with pytest.raises(RpcError) as onward:
        ann.call("handoff", action="initiate", to=BEA, reason="r", package=package(task))
    assert onward.value.reason == "task_elsewhere"
    assert onward.value.data["handoffId"] == handoff
    other = agent(alpha, "other")
    with pytest.raises(RpcError) as unknown:
        other.call("handoff", action="get", handoff_id=handoff)
    assert unknown.value.reason == "not_found"
    assert step(beta, "get", handoff)["refusal"]["kind"] == "NotFound"


@pytest.mark.parametrize(
    ("type", "more"),
    [
        ("handoff.reject", {"handoff_id": HANDOFF, "reason": "other", "detail": "withdrawn"}),
        ("status.complete", {}),
        ("status.update", {}),
    ],
)
def test_a_task_is_free_when_the_node_that_holds_it_says_so(
    beta: MeshMember, ann: MailAgent, type: str, more: dict[str, Any]
) -> None:
    """What ends a handoff is told by mail; `status` says how it stands."""
    handoff, task = str(uuid7()), f"task-{uuid7()}"
    payload = {"summary": "s", "handoff_id": handoff, "task_id": task}
    beta.brings(beta.letter(BOB, ann.id, type="handoff.initiate", payload=payload))
    given: dict[str, Any] = {"action": "initiate", "to": BEA, "reason": "r"}
    given["package"] = package(task)
    for status in ("activated", "closed"):
        with pytest.raises(RpcError) as onward:
            ann.call("handoff", **given)
        assert onward.value.reason == "task_elsewhere"
        about = {"handoff_id": handoff, "status": status}
        told = {"summary": "s", "details": about} | more
        assert beta.brings(beta.letter(BOB, ann.id, type=type, payload=told))["error"] is None
    assert ann.call("handoff", **given)["handoff"]["taskId"] == task


def test_what_evidence_is_worth_the_receivers_node_says_itself(
    beta: MeshMember, ann: MailAgent
) -> None:
    """And nodes of earlier releases would not take the member."""
    handoff = offered(ann, work_state={"test_status": "passing"})
    shown = step(beta, "get", handoff)["answer"]
    assert shown["package"]["work_state"]["test_status"] == "passing"
    assert "evidence" not in shown
    assert "evidence" in ann.call("handoff", action="get", handoff_id=handoff)
