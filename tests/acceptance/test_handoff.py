"""Two agents on a real node: a race for a task, and kill -9 between steps (acp-canonical §7)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.in_process_node import package
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, RpcError

STEPS: list[tuple[str, str, dict[str, Any]]] = [
    ("receiver", "accept", {}),
    ("receiver", "complete", {"summary": "done"}),
    ("sender", "close", {}),
]


def offer(sender: MailAgent, receiver: MailAgent, task: str) -> str:
    try:
        made = sender.call(
            "handoff", action="initiate", to=receiver.id, reason="r", package=package(task)
        )
    except RpcError as error:
        return str(error.reason)
    return str(made["handoff"]["handoffId"])


def test_of_two_who_hand_on_one_task_one_wins(node: Node) -> None:
    """§7.2 rule 3: on a real node, at the same moment."""
    agents = [agent(node, f"racer{number}") for number in range(4)]
    receiver = agent(node, "receiver")
    task = f"task-{receiver.id}"
    with ThreadPoolExecutor(len(agents)) as pool:
        outcomes = list(pool.map(lambda one: offer(one, receiver, task), agents))
    won = [one for one in outcomes if one != "ownership_conflict"]
    assert len(won) == 1
    (row,) = node.query("SELECT id, status FROM handoffs WHERE task_id = ?", task)
    assert row == (won[0], "proposed")
    types = [message["type"] for message in receiver.inbox()["messages"]]
    assert types == ["handoff.initiate"]
    winner = agents[outcomes.index(won[0])]
    why = {"code": "other", "detail": "withdrawn"}
    winner.call("handoff", action="reject", handoff_id=won[0], **why)
    others = [one for one in agents if one is not winner]
    with ThreadPoolExecutor(len(others)) as pool:
        again = list(pool.map(lambda one: offer(one, receiver, task), others))
    assert again.count("ownership_conflict") == len(others) - 1, "a withdrawn task is anybody's"


def test_a_handoff_goes_on_after_a_kill_between_steps(tmp_path: Path) -> None:
    """What was answered is on disk, with its history and its message."""
    with Node(tmp_path) as node:
        sides = {"sender": agent(node, "sender"), "receiver": agent(node, "receiver")}
        handoff_id = offer(sides["sender"], sides["receiver"], "task-1")
        for number, (side, action, params) in enumerate(STEPS):
            if number != 1:
                node.kill()
                node.restart()
            sides[side].call("handoff", action=action, handoff_id=handoff_id, **params)
        history = sides["sender"].call("handoff", action="history", handoff_id=handoff_id)
        assert [one["after"] for one in history["history"]] == [
            "draft",
            "proposed",
            "validating",
            "accepted",
            "activated",
            "completed",
            "closed",
        ]
        told = {
            name: [message["type"] for message in side.inbox()["messages"]]
            for name, side in sides.items()
        }
        assert told == {
            "sender": ["handoff.accept", "handoff.complete"],
            "receiver": ["handoff.initiate", "status.complete"],
        }
