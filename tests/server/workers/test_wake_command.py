"""Commands that wake agents: real processes that hang, fail and leave others behind (§10)."""

import os
import signal
from pathlib import Path

import pytest

from server.workers.wake_command import environment
from tests.support.mail_agent import MailAgent
from tests.support.pushing_node import PushingNode
from tests.support.waiting import eventually


@pytest.fixture
def post_office(pushing: PushingNode) -> PushingNode:
    return pushing


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_learns_of_the_node_only_what_waits() -> None:
    call = {"agent": "a", "messageId": "m", "priority": "critical", "unread": 2}
    assert environment({"PATH": "/bin", "CACP_MESH_TOKEN": "s", "CACP_KEY": "k"}, call) == {
        "PATH": "/bin",
        "ACP_AGENT": "a",
        "ACP_MESSAGE_ID": "m",
        "ACP_PRIORITY": "critical",
        "ACP_UNREAD": "2",
    }


def test_what_is_critical_wakes_its_recipient(pushing: PushingNode, anna: MailAgent) -> None:
    recipient = pushing.agent_with_wake_command("wakes")
    anna.send(recipient, priority="high")
    sent = anna.send(recipient, priority="critical", payload={"summary": "$(rm -rf /)"})
    eventually(lambda: pushing.wake_calls("wakes") != [])
    (call,) = pushing.wake_calls("wakes")
    id = sent["message"]["id"]
    assert call == {
        "agent": recipient.address,
        "messageId": id,
        "priority": "critical",
        "unread": 2,
        "ACP_AGENT": recipient.address,
        "ACP_MESSAGE_ID": id,
        "ACP_PRIORITY": "critical",
        "ACP_UNREAD": "2",
    }
    eventually(lambda: pushing.pushed(recipient, "wake")[0][:2] == ("delivered", 1))
    # Who is awake has not got the message yet.
    assert anna.receipts(id) == {recipient.address: "pending"}
    recipient.inbox(ack=[id])
    assert pushing.pushed(recipient, "wake")[0][0] == "read"


def test_what_is_not_acknowledged_wakes_again(pushing: PushingNode, anna: MailAgent) -> None:
    recipient = pushing.agent_with_wake_command("leaves")
    anna.send(recipient, priority="critical")
    eventually(lambda: pushing.pushed(recipient, "wake")[:1] == [("delivered", 1, 0, 1, None)])
    # What a command leaves behind when it ends by itself may be the agent: it lives.
    child = pushing.wake_calls("leaves")[0]["child"]
    assert lives(child)
    pushing.expire_leases(recipient, "wake")
    anna.send(recipient)
    eventually(lambda: len(pushing.wake_calls("leaves")) == 2)
    for call in pushing.wake_calls("leaves"):
        os.kill(call["child"], signal.SIGKILL)


def test_one_that_takes_too_long_is_killed_with_its_children(
    pushing: PushingNode, anna: MailAgent
) -> None:
    recipient = pushing.agent_with_wake_command("hangs")
    sent = anna.send(recipient, priority="critical")["message"]["id"]
    eventually(
        lambda: pushing.pushed(recipient, "wake")[0][4] == "the wake command took more than 2 s",
        20,
    )
    child = pushing.wake_calls("hangs")[0]["child"]
    eventually(lambda: not lives(child))
    recipient.inbox(ack=[sent])


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        ("fails", "the wake command ended with status 3"),
        ("missing", "the wake command can't be run (FileNotFoundError)"),
    ],
)
def test_one_that_fails_is_tried_again_and_given_up(
    pushing: PushingNode, anna: MailAgent, behaviour: str, error: str
) -> None:
    recipient = pushing.agent_with_wake_command(behaviour)
    sent = anna.send(recipient, priority="critical")["message"]["id"]
    eventually(lambda: pushing.pushed(recipient, "wake")[0][4] == error)
    eventually(
        lambda: pushing.query("SELECT 1 FROM breakers WHERE name = ?", f"wake:{recipient.address}"),
        20,
    )
    assert recipient.received() == [sent]
    recipient.inbox(ack=[sent])
