"""Commands that wake agents: real processes that hang, fail and leave others behind (§10)."""

import os
import signal
from pathlib import Path

import pytest

from server.workers.wake_command import environment
from tests.mail import Agent
from tests.pushing import Pushing
from tests.waiting import eventually


@pytest.fixture
def post_office(pushing: Pushing) -> Pushing:
    return pushing


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_learns_of_the_node_only_what_waits() -> None:
    told = {"agent": "a", "messageId": "m", "priority": "critical", "unread": 2}
    assert environment({"PATH": "/bin", "CACP_MESH_TOKEN": "s", "CACP_KEY": "k"}, told) == {
        "PATH": "/bin",
        "ACP_AGENT": "a",
        "ACP_MESSAGE_ID": "m",
        "ACP_PRIORITY": "critical",
        "ACP_UNREAD": "2",
    }


def test_what_is_critical_wakes_its_recipient(pushing: Pushing, anna: Agent) -> None:
    sleeper = pushing.sleeper("wakes")
    anna.send(sleeper, priority="high")
    sent = anna.send(sleeper, priority="critical", payload={"summary": "$(rm -rf /)"})
    eventually(lambda: pushing.told("wakes") != [])
    (told,) = pushing.told("wakes")
    id = sent["message"]["id"]
    assert told == {
        "agent": sleeper.address,
        "messageId": id,
        "priority": "critical",
        "unread": 2,
        "ACP_AGENT": sleeper.address,
        "ACP_MESSAGE_ID": id,
        "ACP_PRIORITY": "critical",
        "ACP_UNREAD": "2",
    }
    eventually(lambda: pushing.pushed(sleeper, "wake")[0][:2] == ("delivered", 1))
    # Who is awake has not got the message yet.
    assert anna.receipts(id) == {sleeper.address: "pending"}
    sleeper.inbox(ack=[id])
    assert pushing.pushed(sleeper, "wake")[0][0] == "read"


def test_what_is_not_acknowledged_wakes_again(pushing: Pushing, anna: Agent) -> None:
    sleeper = pushing.sleeper("leaves")
    anna.send(sleeper, priority="critical")
    eventually(lambda: pushing.pushed(sleeper, "wake")[:1] == [("delivered", 1, 0, 1, None)])
    # What a command leaves behind when it ends by itself may be the agent: it lives.
    child = pushing.told("leaves")[0]["child"]
    assert lives(child)
    pushing.lapse(sleeper, "wake")
    anna.send(sleeper)
    eventually(lambda: len(pushing.told("leaves")) == 2)
    for told in pushing.told("leaves"):
        os.kill(told["child"], signal.SIGKILL)


def test_one_that_takes_too_long_is_killed_with_its_children(pushing: Pushing, anna: Agent) -> None:
    sleeper = pushing.sleeper("hangs")
    sent = anna.send(sleeper, priority="critical")["message"]["id"]
    eventually(
        lambda: pushing.pushed(sleeper, "wake")[0][4] == "the waking command took more than 2 s", 20
    )
    child = pushing.told("hangs")[0]["child"]
    eventually(lambda: not lives(child))
    sleeper.inbox(ack=[sent])


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("fails", "the waking command ended with status 3"),
        ("missing", "the waking command can't be run (FileNotFoundError)"),
    ],
)
def test_one_that_fails_is_tried_again_and_given_up(
    pushing: Pushing, anna: Agent, how: str, error: str
) -> None:
    sleeper = pushing.sleeper(how)
    sent = anna.send(sleeper, priority="critical")["message"]["id"]
    eventually(lambda: pushing.pushed(sleeper, "wake")[0][4] == error)
    eventually(
        lambda: pushing.query("SELECT 1 FROM breakers WHERE name = ?", f"wake:{sleeper.address}"),
        20,
    )
    assert sleeper.received() == [sent]
    sleeper.inbox(ack=[sent])
