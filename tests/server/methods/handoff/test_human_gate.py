"""The human gate: acp/approve (acp-canonical §2.8, §12.8)."""

from typing import Any

import pytest

from server.domain.agents import same_agent
from tests.server.methods.refusals import refused
from tests.support.in_process_node import package
from tests.support.mail_agent import MailAgent, MailAgents
from tests.support.node import Node

GATED = {"human_gate": "required"}


@pytest.fixture
def human(agents: MailAgents) -> MailAgent:
    return agents("dora", human=True)


def gated(anna: MailAgent, bert: MailAgent, **more: object) -> str:
    done = anna.send(bert, policy=GATED, **more)
    assert done["held"] == "gate"
    return str(done["message"]["id"])


def events(node: Node, message_id: str) -> list[tuple[str, str]]:
    rows = node.query(
        "SELECT actor, outcome FROM acp_audit WHERE message_id = ? ORDER BY seq", message_id
    )
    return [(actor, outcome) for actor, outcome in rows]


def test_a_gated_message_waits_for_a_human(
    anna: MailAgent, bert: MailAgent, human: MailAgent, node: Node
) -> None:
    sent = gated(anna, bert)
    assert bert.received() == []
    assert bert.call("query")["messages"] == []
    (acked,) = bert.call("ack", message_ids=[sent])["acked"]
    assert acked["outcome"] == "unknown"
    waiting = human.call("query", held="gate", agent=anna.id)["messages"]
    assert [one["message"]["id"] for one in waiting] == [sent]
    done = human.call("approve", message_id=sent)
    assert done["outcome"] == "approved"
    assert bert.received() == [sent]
    assert events(node, sent) == [(anna.id, "gate"), (human.id, "approved")]


def test_only_a_human_lets_it_through(anna: MailAgent, bert: MailAgent, node: Node) -> None:
    """Neither the sender, nor the recipient, nor the node's own agent."""
    sent = gated(anna, bert)
    for agent in (anna, bert):
        with refused(-32003, "not_human"):
            agent.call("approve", message_id=sent)
    with refused(-32003, "not_human"):
        node.call("acp/approve", message_id=sent)
    assert bert.received() == []


def test_a_refused_message_fails(anna: MailAgent, bert: MailAgent, human: MailAgent) -> None:
    sent = gated(anna, bert)
    done = human.call("approve", message_id=sent, decision="refuse", comment="not today")
    assert done["message"]["status"] == "failed"
    assert done["receipts"][0]["error"] == "refused by a human"
    assert bert.received() == []
    assert bert.inbox()["counts"]["received"] == 0
    with refused(-32602, "illegal_transition"):
        human.call("approve", message_id=sent)


def test_what_waits_for_no_human_needs_none(
    anna: MailAgent, bert: MailAgent, human: MailAgent
) -> None:
    sent = anna.send(bert)["message"]["id"]
    with refused(-32602, "illegal_transition"):
        human.call("approve", message_id=sent)
    with refused(-32602, "not_found"):
        human.call("approve", message_id="unknown")


def test_the_gate_keeps_the_order_of_a_thread(
    anna: MailAgent, bert: MailAgent, human: MailAgent
) -> None:
    """§12.5: what follows a gated message waits for it, and goes on when it is refused."""
    thread = f"t-{anna.address}"
    first = gated(anna, bert, thread_id=thread, sequence=1)
    second = anna.send(bert, thread_id=thread, sequence=2)["message"]["id"]
    assert bert.received() == []
    human.call("approve", message_id=first)
    assert bert.received() == [first, second]
    third = gated(anna, bert, thread_id=thread, sequence=3)
    fourth = anna.send(bert, thread_id=thread, sequence=4)["message"]["id"]
    human.call("approve", message_id=third, decision="refuse")
    assert bert.received() == [first, second, fourth]


@pytest.mark.parametrize("to_itself", [True, False])
def test_nobody_ends_what_waits_for_a_human(
    anna: MailAgent, bert: MailAgent, human: MailAgent, to_itself: bool
) -> None:
    """§12.5: a gate keeps no number from others; what it lets through gets the next one."""
    thread = f"t-{anna.address}"
    anna.send(bert, thread_id=thread, sequence=1)
    waits = gated(anna, bert, thread_id=thread, sequence=2)
    bert.send(bert if to_itself else anna, thread_id=thread, sequence=2)
    assert anna.receipts(waits) == {bert.address: "pending"}
    assert waits in [one["id"] for one in human.call("approvals", limit=500)["waiting"]]
    done = human.call("approve", message_id=waits)
    assert done["message"]["sequence"] == (2 if to_itself else 3)
    assert bert.received()[-1] == waits


def test_a_number_in_quarantine_is_no_gates(
    anna: MailAgent, bert: MailAgent, human: MailAgent
) -> None:
    thread = f"t-{anna.address}"
    waits = gated(anna, bert, thread_id=thread, sequence=2)
    anna.send(bert, thread_id=thread, sequence=2)
    assert human.call("approve", message_id=waits)["message"]["sequence"] == 3
    assert bert.received() == []
    anna.send(bert, thread_id=thread, sequence=1)
    assert len(bert.received()) == 3
    assert bert.received()[-1] == waits


def test_a_human_finds_what_waits(anna: MailAgent, bert: MailAgent, human: MailAgent) -> None:
    """Messages and handoffs, each until it is decided on."""

    def waiting(**params: Any) -> list[dict[str, Any]]:
        found = human.call("approvals", limit=500, **params)["waiting"]
        return [one for one in found if same_agent(one["from"], anna.id)]

    with refused(-32003, "not_human"):
        anna.call("approvals")
    assert waiting() == []
    first = gated(anna, bert, topic="launch")
    policy = {"classification": "internal", "requires_human_approval": True}
    given = package(policy=policy)
    offered = anna.call("handoff", action="initiate", to=bert.id, reason="r", package=given)
    handoff_id = offered["handoff"]["handoffId"]
    last = gated(anna, bert)
    found = waiting()
    assert [(one["id"], one["kind"], one["subject"]) for one in found] == [
        (first, "message", "launch"),
        (handoff_id, "handoff", given["task"]["title"]),
        (last, "message", "hello"),
    ]
    assert all(same_agent(to, bert.id) for one in found for to in one["to"])
    page = human.call("approvals", limit=1)
    assert page["nextCursor"] == page["waiting"][0]["id"]
    assert [one["id"] for one in waiting(cursor=first)] == [handoff_id, last]
    for one in found[:2]:
        human.call("approve", message_id=one["id"])
    assert [one["id"] for one in waiting()] == [last]


def test_what_a_human_reads_steers_no_terminal(
    anna: MailAgent, bert: MailAgent, human: MailAgent
) -> None:
    odd = "pay\x1b[31m \u202ered"
    sent = gated(anna, bert, topic=odd)
    policy = {"classification": "internal", "requires_human_approval": True}
    given = package(f"t{anna.address[-12:]}", task={"title": odd}, policy=policy)
    anna.call("handoff", action="initiate", to=bert.id, reason="r", package=given)
    found = human.call("approvals", limit=500, cursor=sent[:-1])["waiting"]
    subjects = [one["subject"] for one in found if same_agent(one["from"], anna.id)]
    assert len(subjects) == 2
    assert all(not set("\x1b\u202e") & set(subject) for subject in subjects)


@pytest.mark.parametrize("leaves", ["recipient", "sender", "all"])
@pytest.mark.parametrize("waits", ["gate", "quarantine"])
def test_what_waited_reaches_no_one_who_has_left_the_teamspace(
    anna: MailAgent, bert: MailAgent, human: MailAgent, agents: MailAgents, leaves: str, waits: str
) -> None:
    """§12.3: it stays among its members, whatever happened while it waited."""
    lead, carl, team = agents("lead"), agents("carl"), f"team-{anna.address[-12:]}"
    members = [{"agent_id": one.id, "role": "researcher"} for one in (anna, bert, carl)]
    lead.call("team", action="create", team=team, name="t", members=members)
    policy = {"visibility": "team", "human_gate": "required" if waits == "gate" else "none"}
    number = {} if waits == "gate" else {"sequence": 2}
    sent = anna.send(bert, carl, team=team, thread_id=team, policy=policy, **number)
    held, message_id = sent["held"], sent["message"]["id"]
    assert held == waits
    if leaves == "all":
        lead.call("team", action="close", team=team)
    else:
        gone = bert if leaves == "recipient" else anna
        lead.call("team", action="removeMember", team=team, agent_id=gone.id)
    if waits == "gate":
        human.call("approve", message_id=message_id)
    else:
        anna.send(bert, thread_id=team, sequence=1)
    reaches = "pending" if leaves == "recipient" else "failed"
    assert anna.receipts(message_id) == {bert.address: "failed", carl.address: reaches}
    assert bert.call("query", message_id=message_id)["messages"] == []
    assert message_id not in bert.received()
    dead = anna.call("deadLetters")["letters"]
    assert "left the teamspace" in dead[0]["receipt"]["error"]
