"""Pushes and webhooks on disk (acp-canonical §9, §10)."""

from schemas.base import iso
from server.domain.acp.pushes import Push
from server.store import mailboxes, messages, pushes
from server.store.connection import Connection
from server.store.pushes import PushTarget, Webhook
from tests.server.store.test_mailboxes import ANNA, BERT, fill
from tests.server.store.test_messages import AT

HOOK = PushTarget("channel", BERT)
SESSION = PushTarget("session", BERT)
NOW = 1_700_000_000_000_000


def add(db: Connection, target: PushTarget, count: int = 2) -> list[str]:
    """Messages in Bert's box that are pushed to a target; their ids."""
    fill(db, count)
    ids = [letter.message.id for letter in mailboxes.all_(db, BERT, 0, count)]
    for number, message_id in enumerate(ids):
        pushes.add(db, message_id, target, iso(NOW + number))
    return ids


def test_a_push_is_added_once_and_due_from_its_time_on(db: Connection) -> None:
    first, second = add(db, HOOK)
    pushes.add(db, first, HOOK, iso(NOW + 99))
    assert pushes.due(db, HOOK, iso(NOW - 1), 10) == []
    (one,) = pushes.due(db, HOOK, iso(NOW), 10)
    assert (one.message.id, one.push, one.box_seq) == (first, Push("pending", 0, 0, NOW), 1)
    found = pushes.due(db, HOOK, iso(NOW + 9), 10)
    assert [one.message.id for one in found] == [first, second]
    assert pushes.due(db, HOOK, iso(NOW + 9), 10, urgent=True) == []
    assert pushes.waiting(db, HOOK) == 2


def test_targets_are_those_that_the_node_serves(db: Connection) -> None:
    ids = add(db, HOOK)
    pushes.add(db, ids[0], SESSION, iso(NOW))
    assert pushes.due_targets(db, "channel", iso(NOW), 10) == [HOOK]
    assert pushes.due_targets(db, "wake", iso(NOW), 10) == []
    assert pushes.next_due(db, "channel", iso(NOW)) == NOW + 1
    assert pushes.next_due_to(db, SESSION) == NOW
    pushes.put_off(db, HOOK, iso(NOW), NOW + 50)
    assert pushes.due_targets(db, "channel", iso(NOW), 10) == []
    assert pushes.next_due_to(db, HOOK) == NOW + 1


def test_what_has_ended_is_not_revived(db: Connection) -> None:
    first, _ = add(db, HOOK)
    (one,) = pushes.due(db, HOOK, iso(NOW), 10)
    pushes.end(db, first, BERT, "read")
    pushes.put(db, one.id, Push("pending", 0, 1, NOW + 5), now=AT)
    assert [one.message.id for one in pushes.due(db, HOOK, iso(NOW + 9), 10)] != [first]


def test_a_session_gives_back_only_what_it_holds(db: Connection) -> None:
    add(db, SESSION)
    for one, holder in zip(pushes.due(db, SESSION, iso(NOW + 9), 10), ("s1", "s2"), strict=True):
        leased = Push("delivered", 1, 0, NOW + 1_000)
        pushes.put(db, one.id, leased, now=AT, holder=holder)
    pushes.release(db, BERT, "s1", 1, iso(NOW + 9))
    assert pushes.due(db, SESSION, iso(NOW + 9), 10) == []
    pushes.release(db, BERT, "s1", 0, iso(NOW + 9))
    assert [one.box_seq for one in pushes.due(db, SESSION, iso(NOW + 9), 10)] == [1]


def test_what_failed_is_armed_again_while_it_is_unread(db: Connection) -> None:
    first, second = add(db, HOOK)
    for one in pushes.due(db, HOOK, iso(NOW + 9), 10):
        pushes.put(db, one.id, Push("failed", 0, 3, None), now=AT, error="HTTP 500")
    assert pushes.given_up(db, HOOK) == 2
    assert pushes.rearm_message(db, first, iso(NOW))
    assert not pushes.rearm_message(db, first, iso(NOW))
    mailboxes.put_delivery(db, second, BERT, "read", AT)
    pushes.rearm(db, HOOK, iso(NOW))
    assert [one.message.id for one in pushes.due(db, HOOK, iso(NOW), 10)] == [first]
    pushes.drop(db, HOOK)
    assert pushes.next_due_to(db, HOOK) is None


def test_pushes_go_with_their_message(db: Connection) -> None:
    first, _ = add(db, HOOK)
    messages.archive(db, first, b"{}", AT)
    assert pushes.waiting(db, HOOK) == 1


def test_an_agent_has_one_webhook(db: Connection) -> None:
    assert pushes.webhook(db, ANNA) is None
    pushes.put_webhook(db, ANNA, Webhook("w1", "http://one.example", AT))
    pushes.put_webhook(db, ANNA, Webhook("w2", "http://two.example", AT))
    assert pushes.webhook(db, ANNA) == Webhook("w2", "http://two.example", AT)
    assert pushes.drop_webhook(db, ANNA)
    assert not pushes.drop_webhook(db, ANNA)
