"""acp/threads and acp/thread: whose threads are listed, in which order, and what of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.domain.errors import NotFound
from tests.support.in_process_node import ANA, BEN, CLEO, HUMAN, InProcessNode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[InProcessNode]:
    with InProcessNode(tmp_path) as made:
        yield made


def send(node: InProcessNode, summary: str, sender: str = ANA, **params: Any) -> str:
    given = {"to": [BEN], "type": "knowledge.push", "payload": {"summary": summary}, **params}
    return str(node.call("acp/send", sender, **given)["message"]["id"])


def listed(node: InProcessNode, agent: str, *, human: bool = False) -> list[str]:
    shown = node.call("acp/threads", agent, human=human)["threads"]
    return [thread["summary"] for thread in shown]


def test_the_newest_thread_is_first(node: InProcessNode) -> None:
    first = send(node, "one")
    send(node, "two")
    assert listed(node, BEN) == listed(node, ANA) == ["two", "one"]
    send(node, "answer", sender=BEN, to=[ANA], reply_to=first)
    assert listed(node, BEN) == listed(node, ANA) == ["answer", "two"]
    assert listed(node, CLEO) == []
    latest, other = node.call("acp/threads", BEN)["threads"]
    assert (latest["messages"], latest["unread"], latest["fromAgent"]) == (2, 1, BEN)
    assert (other["messages"], other["unread"], other["status"]) == (1, 1, "pending")
    node.call("acp/ack", BEN, message_ids=[first])
    assert node.call("acp/threads", BEN)["threads"][0]["unread"] == 0


def test_a_human_sees_what_is_open_to_humans_and_its_own(node: InProcessNode) -> None:
    secret = send(node, "between us")
    send(node, "audited", policy={"visibility": "human-audit"})
    send(node, "to you", to=[HUMAN])
    send(node, "urgent", reply_to=secret, priority="critical")
    send(node, "waits", policy={"human_gate": "required"})
    assert listed(node, HUMAN, human=True) == ["waits", "urgent", "to you", "audited"]
    assert listed(node, HUMAN) == ["to you"]
    assert listed(node, BEN) == ["urgent", "audited"], "not what a human has not approved"
    shown = node.call("acp/thread", HUMAN, human=True, thread_id=secret)
    assert [entry["message"]["payload"]["summary"] for entry in shown["messages"]] == ["urgent"]
    held = node.call("acp/threads", HUMAN, human=True)["threads"][0]
    assert held["held"] == "gate"


def test_a_human_that_is_a_party_is_shown_each_thread_once(node: InProcessNode) -> None:
    for number in range(6):
        send(node, f"open {number}", to=[HUMAN], priority="critical")
        begun = send(node, f"own {number}", to=[HUMAN])
        send(node, f"open later {number}", to=[BEN], reply_to=begun, priority="critical")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = node.call("acp/threads", HUMAN, human=True, limit=5, **cursor)
        seen += [thread["summary"] for thread in page["threads"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    expected = [f"{what} {n}" for n in reversed(range(6)) for what in ("open later", "open")]
    assert seen == expected


def test_a_thread_is_read_page_by_page_from_its_end(node: InProcessNode) -> None:
    first = send(node, "0")
    for number in range(1, 7):
        send(node, str(number), thread_id=first)
    page = node.call("acp/thread", BEN, thread_id=first, limit=3)
    assert [entry["message"]["payload"]["summary"] for entry in page["messages"]] == list("456")
    assert page["messages"][0]["receipts"][0]["recipient"] == BEN
    page = node.call("acp/thread", BEN, thread_id=first, limit=3, cursor=page["nextCursor"])
    assert [entry["message"]["payload"]["summary"] for entry in page["messages"]] == list("123")


def test_what_is_not_for_the_caller_is_unknown(node: InProcessNode) -> None:
    first = send(node, "between us")
    for thread in (first, "nothing"):
        with pytest.raises(NotFound):
            node.call("acp/thread", CLEO, thread_id=thread)
        with pytest.raises(NotFound):
            node.call("acp/thread", HUMAN, human=True, thread_id=thread)
