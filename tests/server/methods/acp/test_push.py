"""The steps of a push, without a node: claimed, made, settled (acp-canonical §10, §12.4)."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.base import iso
from server.domain.acp.pushes import Terms
from server.domain.acp.routing import CHANNELS, capabilities
from server.methods.acp import inbox, push, retention
from server.methods.acp.push import Parcel
from server.store import mailboxes, pushes
from server.store.pushes import PushTarget, Webhook
from tests.server.methods.acp.office import BERT, CARL, SECOND, START, Office, aged

BERTS = "aid://example.com/bert"
CARLS = "aid://example.com/carl"
HOOK, WAKE, SESSION = (PushTarget(one, BERTS) for one in ("channel", "wake", "session"))
PATIENCE = 15 * SECOND
EVERY = frozenset(CHANNELS)


@pytest.fixture
def office(office: Office) -> Office:
    """All channels are on; Bert has a webhook and a command that wakes him."""
    office.rules = replace(
        office.rules,
        limits={},
        capabilities=capabilities(EVERY, EVERY),
        wakes=frozenset({BERTS}),
        pushes=Terms(attempts=3, repeats=2),
    )
    pushes.put_webhook(office.db, BERTS, Webhook("w1", "http://bert.example/mail", "2026"))
    return office


def claimed(office: Office, target: PushTarget = HOOK) -> Parcel | None:
    return push.claim(office.context(method="acp/push"), target, PATIENCE)


def settled(office: Office, parcel: Parcel | None, error: str | None = None) -> push.PushOutcome:
    assert parcel is not None
    return push.settle(office.context(method="acp/push"), parcel, error, chance=1.0)


def row(office: Office, message_id: str, channel: str) -> tuple[Any, ...]:
    (found,) = office.rows(
        "SELECT status, pushes, failures, due_at IS NULL, error FROM delivery_log"
        " WHERE message_id = ? AND channel = ?",
        message_id,
        channel,
    )
    return found


def channels_of(office: Office, message_id: str) -> list[tuple[str, str]]:
    return office.rows(
        "SELECT recipient, channel FROM delivery_log WHERE message_id = ? ORDER BY id", message_id
    )


def shown(office: Office, holder: str = "s1", **how: Any) -> list[str]:
    context = office.context(BERT, "acp/claim")
    return [one.message.id for one in push.show(context, BERTS, holder=holder, limit=10, **how)]


@pytest.mark.parametrize(
    ("priority", "taken"),
    [
        ("low", ["inbox"]),
        ("normal", ["inbox", "session"]),
        ("high", ["inbox", "session", "channel"]),
        ("critical", ["inbox", "session", "channel", "wake"]),
    ],
)
def test_a_message_takes_the_channels_of_its_priority(
    office: Office, priority: str, taken: list[str]
) -> None:
    """§10.2."""
    sent = office.post(priority=priority)
    assert channels_of(office, sent) == [(BERTS, one) for one in taken]


def test_who_has_neither_webhook_nor_command_is_reached_by_neither(office: Office) -> None:
    sent = office.post(priority="critical", to=[CARL])
    assert channels_of(office, sent) == [(CARLS, "inbox"), (CARLS, "session")]


def test_what_is_held_is_pushed_once_it_is_let_through(office: Office) -> None:
    late = office.post(priority="high", thread_id="t", sequence=2)
    assert channels_of(office, late) == [(BERTS, "inbox")]
    office.post(priority="high", thread_id="t", sequence=1)
    assert len(channels_of(office, late)) == 3


def test_a_webhook_gets_one_message_at_a_time_in_their_order(office: Office) -> None:
    first, second = office.post(priority="high"), office.post(priority="high")
    parcel = claimed(office)
    assert parcel is not None
    assert (parcel.envelope["id"], parcel.unread, parcel.url) == (
        first,
        2,
        "http://bert.example/mail",
    )
    settled(office, parcel)
    assert row(office, first, "channel") == ("delivered", 1, 0, 0, None)
    parcel = claimed(office)
    assert parcel is not None
    assert parcel.envelope["id"] == second


def test_what_a_webhook_has_taken_is_delivered_and_comes_back_until_it_is_read(
    office: Office,
) -> None:
    sent = office.post(priority="high")
    settled(office, claimed(office))
    box = mailboxes.delivery(office.db, sent, BERTS)
    assert box is not None
    assert box.status == "delivered"
    assert claimed(office) is None
    office.at += 301
    settled(office, claimed(office))
    # It was told as often as is allowed.
    assert row(office, sent, "channel") == ("delivered", 2, 0, 1, None)


def test_what_was_read_is_pushed_no_more(office: Office) -> None:
    sent = office.post(priority="critical")
    settled(office, claimed(office))
    inbox.acknowledge(office.context(BERT, "acp/ack"), [sent])
    assert [row(office, sent, one)[0] for one in ("session", "channel", "wake")] == ["read"] * 3
    office.at += 10_000
    assert (claimed(office), claimed(office, WAKE), shown(office)) == (None, None, [])


def test_what_is_read_while_it_is_pushed_stays_read(office: Office) -> None:
    sent = office.post(priority="high")
    parcel = claimed(office)
    inbox.acknowledge(office.context(BERT, "acp/ack"), [sent])
    settled(office, parcel, "the webhook closed the connection")
    assert row(office, sent, "channel") == ("read", 0, 1, 1, None)


def test_a_push_whose_node_was_killed_comes_back(office: Office) -> None:
    sent = office.post(priority="high")
    assert claimed(office) is not None
    office.reopen()
    assert claimed(office) is None
    office.at += 16
    again = claimed(office)
    assert again is not None
    assert again.envelope["id"] == sent


def test_what_fails_too_often_is_given_up_but_stays_in_the_inbox(office: Office) -> None:
    sent = office.post(priority="high")
    for _ in range(3):
        office.at += 3_700
        outcome = settled(office, claimed(office), "the webhook answers with HTTP 500")
    assert outcome.given_up == 1
    assert row(office, sent, "channel") == (
        "failed",
        0,
        3,
        1,
        "the webhook answers with HTTP 500",
    )
    assert office.rows("SELECT outcome FROM acp_audit WHERE message_id = ?", sent)[-1] == (
        "push_failed",
    )
    ((_, letter),) = mailboxes.dead(
        office.db, "aid://example.com/anna", human=False, after=0, limit=10
    )
    assert (letter["channel"], letter["receipt"]["status"]) == ("channel", "failed")
    box = mailboxes.delivery(office.db, sent, BERTS)
    assert box is not None
    assert box.status == "pending"
    assert pushes.rearm_message(office.db, sent, iso(START))
    office.at += 3_700
    assert claimed(office) is not None


def test_many_failures_open_the_breaker_and_a_success_closes_it(office: Office) -> None:
    """§12.4."""
    office.rules = replace(office.rules, pushes=Terms(attempts=100))
    office.post(priority="high")
    for number in range(5):
        office.at += 100
        outcome = settled(office, claimed(office), "the webhook can't be reached")
        assert outcome.opened == (number == 4)
    other = office.post(priority="high")
    assert claimed(office) is None
    due = pushes.next_due_to(office.db, HOOK)
    assert due is not None
    assert due > START + int(office.at * SECOND)
    office.reopen()
    assert claimed(office) is None
    office.at += 31
    parcel = claimed(office)
    settled(office, parcel)
    assert office.rows("SELECT count(*) FROM breakers WHERE name LIKE 'channel:%'") == [(0,)]
    assert row(office, other, "session")[0] == "pending"


def test_one_command_stands_for_all_that_waits(office: Office) -> None:
    """Waking is not delivering: the inbox knows nothing of it."""
    sent = [office.post(priority="critical") for _ in range(3)]
    parcel = claimed(office, WAKE)
    assert parcel is not None
    assert (len(parcel.due), parcel.envelope["id"], parcel.unread) == (3, sent[0], 3)
    settled(office, parcel)
    assert [row(office, one, "wake")[0] for one in sent] == ["delivered"] * 3
    box = mailboxes.delivery(office.db, sent[0], BERTS)
    assert box is not None
    assert box.status == "pending"


def test_what_an_operator_took_away_is_used_no_more(office: Office) -> None:
    office.post(priority="critical")
    office.rules = replace(office.rules, wakes=frozenset())
    pushes.drop_webhook(office.db, BERTS)
    assert (claimed(office), claimed(office, WAKE)) == (None, None)
    assert (pushes.next_due_to(office.db, HOOK), pushes.next_due_to(office.db, WAKE)) == (
        None,
        None,
    )


def test_a_session_is_shown_each_message_once_per_lease(office: Office) -> None:
    sent = [office.post(), office.post(priority="low"), office.post(priority="high")]
    assert shown(office, urgent=True) == [sent[2]]
    assert shown(office) == [sent[0]]
    assert (shown(office), shown(office, "s2")) == ([], [])
    office.at += 301
    assert shown(office, "s2") == [sent[0], sent[2]]
    office.at += 301
    assert shown(office) == []
    office.at += 301
    assert shown(office) == [sent[0], sent[2]]


def test_a_session_that_has_forgotten_is_shown_again_what_it_was(office: Office) -> None:
    sent = office.post()
    assert shown(office, "s1") == [sent]
    pushes.release(office.db, BERTS, "s2", 0, "2027-01-01T00:00:00.000000+00:00")
    assert shown(office, "s2") == []
    context = office.context(BERT)
    pushes.release(office.db, BERTS, "s1", 0, iso(context.stamp))
    assert shown(office, "s1") == [sent]


def test_what_expired_is_not_pushed(office: Office) -> None:
    office.post(priority="critical", expires_at=iso(START + 5 * SECOND))
    office.at += 6
    assert (claimed(office), claimed(office, WAKE), shown(office)) == (None, None, [])
    aged(office.context(method="acp/age"), retention.EXPIRE)
    assert pushes.waiting(office.db, SESSION) == 0
