"""Unread mail as one item; messages that wait for a human."""

from dataclasses import replace

from server.domain.attention.derive import attention
from server.domain.attention.items import Actor
from server.domain.attention.mail import GatedSubject, UnreadSubject
from tests.server.domain.histories import API

UNREAD = UnreadSubject("aid://example.com/api", {"normal": 2, "critical": 1}, 5, 17)
GATED = GatedSubject(
    "m1", "aid://x.example/a", ("aid://x.example/b",), "status.update", "high", "t", 3
)


def test_unread_mail_is_one_item_with_its_counts() -> None:
    [item] = attention([UNREAD], Actor(API.agent_id, {}))
    assert (item.urgency, item.summary) == ("urgent", "3 unread messages: 1 critical, 2 normal")
    assert item.detail == {"counts": {"critical": 1, "normal": 2}}
    assert item.next[0].tool == "acp_inbox"


def test_new_mail_makes_it_another_item() -> None:
    [first] = attention([UNREAD], Actor(API.agent_id, {}))
    [second] = attention([replace(UNREAD, newest=18)], Actor(API.agent_id, {}))
    assert first.id != second.id


def test_it_is_its_owners_and_absent_when_all_is_read() -> None:
    assert attention([UNREAD], Actor("aid://example.com/web@1.0.0", {})) == []
    assert attention([replace(UNREAD, counts={})], Actor(API.agent_id, {})) == []


def test_a_gated_message_waits_for_humans_only() -> None:
    assert attention([GATED], Actor(API.agent_id, {})) == []
    [item] = attention([GATED], Actor(API.agent_id, {}, human=True))
    assert (item.kind, item.next[0].method, item.next[0].tool) == ("approve", "acp/approve", None)
