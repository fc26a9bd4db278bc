"""The human gate: acp/approve (acp-canonical §2.8, §12.8)."""

import pytest

from tests.mail import Agent, Agents
from tests.node import Node
from tests.server.methods.refusals import refused

GATED = {"human_gate": "required"}


@pytest.fixture
def human(agents: Agents) -> Agent:
    return agents("dora", human=True)


def gated(anna: Agent, bert: Agent, **more: object) -> str:
    done = anna.send(bert, policy=GATED, **more)
    assert done["held"] == "gate"
    return str(done["message"]["id"])


def events(node: Node, message_id: str) -> list[tuple[str, str]]:
    rows = node.query(
        "SELECT actor, outcome FROM acp_audit WHERE message_id = ? ORDER BY seq", message_id
    )
    return [(actor, outcome) for actor, outcome in rows]


def test_a_gated_message_waits_for_a_human(
    anna: Agent, bert: Agent, human: Agent, node: Node
) -> None:
    sent = gated(anna, bert)
    assert bert.received() == []
    assert bert.call("query")["messages"] == []
    with refused(-32602, "not_found"):
        bert.call("ack", message_ids=[sent])
    waiting = human.call("query", held="gate", agent=anna.id)["messages"]
    assert [one["message"]["id"] for one in waiting] == [sent]
    done = human.call("approve", message_id=sent)
    assert done["outcome"] == "approved"
    assert bert.received() == [sent]
    assert events(node, sent) == [(anna.id, "gate"), (human.id, "approved")]


def test_only_a_human_lets_it_through(anna: Agent, bert: Agent, node: Node) -> None:
    """Neither the sender, nor the recipient, nor the node's own agent."""
    sent = gated(anna, bert)
    for agent in (anna, bert):
        with refused(-32003, "not_human"):
            agent.call("approve", message_id=sent)
    with refused(-32003, "not_human"):
        node.call("acp/approve", message_id=sent)
    assert bert.received() == []


def test_a_refused_message_fails(anna: Agent, bert: Agent, human: Agent) -> None:
    sent = gated(anna, bert)
    done = human.call("approve", message_id=sent, decision="refuse", comment="not today")
    assert done["message"]["status"] == "failed"
    assert done["receipts"][0]["error"] == "refused by a human"
    assert bert.received() == []
    assert bert.inbox()["counts"]["received"] == 0
    with refused(-32602, "illegal_transition"):
        human.call("approve", message_id=sent)


def test_what_waits_for_no_human_needs_none(anna: Agent, bert: Agent, human: Agent) -> None:
    sent = anna.send(bert)["message"]["id"]
    with refused(-32602, "illegal_transition"):
        human.call("approve", message_id=sent)
    with refused(-32602, "not_found"):
        human.call("approve", message_id="unknown")


def test_the_gate_keeps_the_order_of_a_thread(anna: Agent, bert: Agent, human: Agent) -> None:
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
