"""GET /events?kind=mail: an agent's mail, leased and resumable (acp-canonical §10, session)."""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from server.domain.acp.pushes import Push
from server.http.mail_stream import event
from server.store.messages import MessageRow
from server.store.pushes import DuePush
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, bearer
from tests.support.pushing_node import PushingNode


@pytest.fixture
def post_office(pushing: PushingNode) -> PushingNode:
    return pushing


def take(stream: Iterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return list(itertools.islice(stream, count))


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [one["data"]["message"]["id"] for one in events]


def test_what_comes_back_does_not_set_the_reader_back() -> None:
    message = MessageRow(*[None] * len(MessageRow._fields))  # type: ignore[arg-type]
    first = DuePush(1, Push("pending", 0), 7, "pending", message)
    assert event(first, {}, "e").id == "e:7"
    assert event(first._replace(push=Push("delivered", 1)), {}, "e").id is None


def test_mail_comes_to_its_recipient_only_and_as_it_is_sent(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent
) -> None:
    before = anna.send(bert)["message"]["id"]
    anna.send(agent(pushing, "carl"))
    with pushing.events(key=bert.key, kind="mail") as stream:
        assert ids(take(stream, 1)) == [before]
        assert anna.receipts(before) == {bert.address: "delivered"}
        anna.send(bert, priority="low")
        live = anna.send(bert)["message"]["id"]
        (one,) = take(stream, 1)
    assert one["event"] == "mail"
    assert (one["data"]["message"]["id"], one["data"]["seq"], one["data"]["again"]) == (
        live,
        3,
        False,
    )
    # The inbox lists it all as ever, and takes the event's id as a cursor.
    assert len(bert.received()) == 3
    assert bert.inbox(cursor=one["id"])["messages"] == []


def test_what_was_perhaps_lost_comes_at_once_after_the_last_event_id(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent
) -> None:
    sent = [anna.send(bert)["message"]["id"] for _ in range(3)]
    with pushing.events(key=bert.key, kind="mail") as stream:
        events = take(stream, 3)
    assert ids(events) == sent
    bert.call("ack", message_ids=[sent[1]])
    with pushing.events(key=bert.key, kind="mail", last_event_id=events[0]["id"]) as stream:
        (again,) = take(stream, 1)
        assert ids([again]) == [sent[2]]
        assert again["data"]["again"] is True
        new = anna.send(bert)["message"]["id"]
        assert ids(take(stream, 1)) == [new]


def test_what_is_not_acknowledged_comes_back_on_an_open_stream(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent
) -> None:
    sent = anna.send(bert)["message"]["id"]
    with pushing.events(key=bert.key, kind="mail") as stream:
        assert ids(take(stream, 1)) == [sent]
        pushing.expire_leases(bert, "session")
        anna.call("ack", message_ids=[bert.send(anna)["message"]["id"]])
        assert ids(take(stream, 1)) == [sent]


def test_a_stream_and_a_hook_share_the_mail(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent
) -> None:
    anna.send(bert)
    with pushing.events(key=bert.key, kind="mail") as stream:
        take(stream, 1)
    assert bert.call("claim", session_id="s1")["messages"] == []


def test_a_human_watches_what_is_open_to_audit(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent
) -> None:
    """§10.2: human audit visibility. It is told what happens, not what is said."""
    human = agent(pushing, "dora", human=True)
    with pushing.events(key=human.key, kind="message") as stream:
        anna.send(bert)
        seen = [
            anna.send(bert, priority="critical"),
            anna.send(bert, policy={"visibility": "human-audit"}),
        ]
        found = take(stream, 2)
    assert [one["data"]["entityId"] for one in found] == [one["message"]["id"] for one in seen]
    assert all("payload" not in one["data"] for one in found)


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("kind=message", 403, "not_human"),
        ("kind=mail,contract", 400, "invalid_params"),
        ("kind=mail&after=x", 400, "invalid_params"),
    ],
)
def test_what_is_wrong_is_refused(
    pushing: PushingNode, bert: MailAgent, query: str, status: int, reason: str
) -> None:
    answer = pushing.http.get(f"/events?{query}", headers=bearer(bert.key))
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["data"]["reason"] == reason


def test_it_is_off_elsewhere_by_default(node: Node) -> None:
    """§10.1."""
    headers = {"Authorization": f"Bearer {agent(node).key}", "X-Forwarded-For": "192.0.2.1"}
    with httpx.Client(base_url=node.url, headers=headers) as http:
        answer = http.get("/events", params={"kind": "mail"})
    assert answer.status_code == 403
    assert answer.json()["error"]["data"]["reason"] == "session_disabled"
    assert node.get("/health").json()["mail"] == {
        "inbox": "available",
        "session": "available",
        "channel": "disabled",
        "wake": "disabled",
    }
