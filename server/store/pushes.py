"""Pushes on the channels besides the inbox, and webhooks (acp-canonical §10).

A push is a row of `delivery_log`: one for each message, recipient and channel.
"""

from typing import NamedTuple

from schemas.acp import ACPMessageStatus
from schemas.base import iso, stamp_of
from server.domain.acp.pushes import Push
from server.domain.acp.routing import Channel
from server.store.connection import Connection
from server.store.messages import MessageRow
from server.store.sql import SQL, Row, plain

# On the hot path.
_INSERT = plain(SQL.insert_push)


class PushTarget(NamedTuple):
    """A channel of a recipient."""

    channel: Channel
    address: str


class DuePush(NamedTuple):
    """A due push. `box_seq` and `box_status` are those of the message in the inbox."""

    id: int
    push: Push
    box_seq: int
    box_status: ACPMessageStatus
    message: MessageRow


class Webhook(NamedTuple):
    """The URL at which an agent's mail is announced."""

    webhook_id: str
    url: str
    created_at: str


def add(db: Connection, message_id: str, target: PushTarget, now: str) -> None:
    """Queue a push; does nothing when the message has one for this target already."""
    db.execute(_INSERT, (message_id, target.address, target.channel, now))


def due_targets(db: Connection, channel: Channel, now: str, limit: int) -> list[PushTarget]:
    """The targets of a channel with due pushes, the longest due first."""
    rows = SQL.due_recipients(db, channel=channel, now=now, limit=limit)
    return [PushTarget(channel, row[0]) for row in rows]


def next_due(db: Connection, channel: Channel, now: str) -> int | None:
    """When the channel's next push will be due, as a stamp; None when there is none."""
    return _stamp(SQL.next_due(db, channel=channel, now=now))


def next_due_to(db: Connection, target: PushTarget) -> int | None:
    """When the next push to a target is or was due, as a stamp; None when there is none."""
    return _stamp(SQL.next_due_to(db, recipient=target.address, channel=target.channel))


def due(
    db: Connection, target: PushTarget, now: str, limit: int, *, urgent: bool = False
) -> list[DuePush]:
    """The due pushes of a target, in the order of arrival; `urgent`: only those of priority high or
    critical."""
    rows = SQL.due_pushes(
        db,
        recipient=target.address,
        channel=target.channel,
        now=now,
        urgent=urgent,
        limit=limit,
    )
    return [_due(row) for row in rows]


def put(
    db: Connection,
    id: int,
    push: Push,
    *,
    now: str,
    error: str | None = None,
    holder: str | None = None,
) -> None:
    """Store the state of a push, unless it has ended meanwhile. `holder` is the session that the
    message is shown to."""
    SQL.put_push(
        db,
        id=id,
        status=push.status,
        pushes=push.pushes,
        failures=push.failures,
        due_at=None if push.due is None else iso(push.due),
        delivered_at=now if push.status == "delivered" else None,
        error=error,
        holder=holder,
    )


def end(db: Connection, message_id: str, address: str, status: ACPMessageStatus) -> None:
    """End the pushes of a message that is read, expired or failed for the recipient."""
    SQL.end_pushes(db, message_id=message_id, recipient=address, status=status)


def put_off(db: Connection, target: PushTarget, now: str, until: int) -> None:
    """Postpone the due pushes of a target until `until`, a stamp."""
    SQL.put_off(db, recipient=target.address, channel=target.channel, now=now, due_at=iso(until))


def release(db: Connection, address: str, holder: str, after: int, now: str) -> None:
    """End a session's leases on messages after a number in the mailbox."""
    SQL.release(db, recipient=address, holder=holder, after=after, now=now)


def rearm_message(db: Connection, message_id: str, now: str) -> bool:
    """Retry the failed pushes of a message for recipients that have not read it. False when there
    are none."""
    return bool(SQL.rearm_message(db, message_id=message_id, now=now))


def rearm(db: Connection, target: PushTarget, now: str) -> None:
    """Retry the failed pushes of unread messages to a target."""
    SQL.rearm_channel(db, recipient=target.address, channel=target.channel, now=now)


def drop(db: Connection, target: PushTarget) -> None:
    """Drop all pushes to a target."""
    SQL.drop_pushes(db, recipient=target.address, channel=target.channel)


def waiting(db: Connection, target: PushTarget) -> int:
    """How many messages have not been pushed successfully yet."""
    return int(SQL.waiting_pushes(db, recipient=target.address, channel=target.channel))


def given_up(db: Connection, target: PushTarget) -> int:
    """How many messages were given up for a target."""
    return int(SQL.failed_pushes(db, recipient=target.address, channel=target.channel))


# --- webhooks ---------------------------------------------------


def webhook(db: Connection, address: str) -> Webhook | None:
    row = SQL.webhook(db, address=address)
    return Webhook(*row) if row else None


def put_webhook(db: Connection, address: str, webhook: Webhook) -> None:
    """Store an agent's webhook, replacing a former one."""
    SQL.put_webhook(db, address=address, **webhook._asdict())


def drop_webhook(db: Connection, address: str) -> bool:
    """Remove an agent's webhook. False when it had none."""
    return bool(SQL.drop_webhook(db, address=address))


def _due(row: Row) -> DuePush:
    push = Push(row[1], row[2], row[3], stamp_of(row[4]))
    return DuePush(row[0], push, row[5], row[6], MessageRow(*row[7:]))


def _stamp(text: str | None) -> int | None:
    return None if text is None else stamp_of(text)
