"""The mailbox of each agent, and the status of messages for each recipient (acp-canonical §9,
§12.5).

An agent's address is its id without a version, so that a newer release reads the mail of the
former.
"""

from typing import Any, NamedTuple

import orjson

from schemas.acp import ACPMessageStatus, ACPPriority
from schemas.base import present
from server.domain.acp.routing import Channel
from server.domain.agents import identity, same_agent
from server.store import messages
from server.store.connection import Connection
from server.store.messages import MessageRow
from server.store.sql import SQL, Row, plain

# On the hot path.
_HIGH_WATER = plain(SQL.high_water)
_PUT_HIGH_WATER = plain(SQL.put_high_water)
_BOX = plain(SQL.mailbox)
_DELIVERIES = plain(SQL.deliveries)
_INSERT = plain(SQL.insert_delivery)
_UNREAD = plain(SQL.unread_box)
_WHOLE = plain(SQL.whole_box)


class Mailbox(NamedTuple):
    """The counts of a mailbox. `high_water` counts all messages that ever arrived; those that no
    other count includes are unread."""

    high_water: int = 0
    read: int = 0
    expired: int = 0
    failed: int = 0

    def counts(self) -> dict[str, int]:
        """The Counts object."""
        return {
            "received": self.high_water,
            "unread": self.high_water - self.read - self.expired - self.failed,
            "read": self.read,
            "expired": self.expired,
            "failed": self.failed,
        }


class DeliveryState(NamedTuple):
    """The status of a message for one recipient. `box_seq` is None while the message is held."""

    recipient: str
    status: ACPMessageStatus = "pending"
    delivered_at: str | None = None
    read_at: str | None = None
    error: str | None = None
    box_seq: int | None = None


class InboxEntry(NamedTuple):
    """A message in a mailbox; `status` is this recipient's. `source` is the node that vouches for
    it; None for a message that was sent here."""

    seq: int
    status: ACPMessageStatus
    source: str | None
    message: MessageRow


def box(db: Connection, address: str) -> Mailbox | None:
    row = db.execute(_BOX, (address,)).fetchone()
    return Mailbox(*row) if row else None


def count(
    db: Connection, address: str, *, read: int = 0, expired: int = 0, failed: int = 0
) -> None:
    """Add to the counts of a mailbox."""
    SQL.count_in_box(db, address=address, read_count=read, expired=expired, failed=failed)


def hold(db: Connection, message_id: str, address: str) -> None:
    """Add a recipient of a message without putting it into the mailbox."""
    _deliver(db, message_id, address, None)


def put(db: Connection, message_id: str, address: str, now: str) -> None:
    """Put a new message into a mailbox, which is created for the first one."""
    _deliver(db, message_id, address, _next(db, address, now))


def put_held(db: Connection, message_id: str, address: str, now: str) -> None:
    """Put a held message into a mailbox."""
    seq = _next(db, address, now)
    SQL.put_box_seq(db, message_id=message_id, recipient=address, box_seq=seq)


def deliveries(db: Connection, message_id: str) -> list[DeliveryState]:
    """The status of a message for each recipient, in the order in which they were named."""
    return [DeliveryState(*row) for row in db.execute(_DELIVERIES, (message_id,))]


def delivery(db: Connection, message_id: str, address: str) -> DeliveryState | None:
    row = SQL.delivery(db, message_id=message_id, recipient=address)
    return DeliveryState(*row) if row else None


def put_delivery(
    db: Connection,
    message_id: str,
    address: str,
    status: ACPMessageStatus,
    now: str,
    error: str | None = None,
) -> None:
    """Set the status of a message for a recipient; `now` becomes the time of that status."""
    SQL.put_delivery(
        db,
        message_id=message_id,
        recipient=address,
        status=status,
        delivered_at=now if status in ("delivered", "read") else None,
        read_at=now if status == "read" else None,
        error=error,
    )


def unread(
    db: Connection, address: str, after: int, now: str, limit: int, *, urgent: bool = False
) -> list[InboxEntry]:
    """The messages in a mailbox after a number that are neither read nor expired; `urgent`: only
    those of priority high or critical."""
    return _entries(db.execute(_UNREAD, (address, after, now, urgent, limit)).fetchall())


def unread_heads(db: Connection, address: str, now: str, limit: int) -> dict[str, ACPPriority]:
    """The priorities of the first messages that are neither read nor expired, by id."""
    return dict(SQL.unread_heads(db, address=address, now=now, limit=limit))


def all_(
    db: Connection, address: str, after: int, limit: int, *, urgent: bool = False
) -> list[InboxEntry]:
    """All messages in a mailbox after a number, whatever their status; `urgent` as for `unread`."""
    return _entries(db.execute(_WHOLE, (address, after, urgent, limit)).fetchall())


def receipt(delivery: DeliveryState) -> dict[str, Any]:
    """The Receipt object."""
    shown = {
        "recipient": delivery.recipient,
        "status": delivery.status,
        "deliveredAt": delivery.delivered_at,
        "readAt": delivery.read_at,
        "error": delivery.error,
    }
    return present(shown)


def receipts(db: Connection, message_id: str) -> list[dict[str, Any]]:
    """The Receipt objects of a message."""
    return [receipt(delivery) for delivery in deliveries(db, message_id)]


def whole(db: Connection, message: MessageRow) -> bytes:
    """A message's envelope and receipts as the archive stores them: {message, receipts}, JSON."""
    return orjson.dumps(
        {"message": messages.envelope(message), "receipts": receipts(db, message.id)}
    )


def reached(delivery: DeliveryState) -> dict[str, Any]:
    """The status as nodes send it to each other (schemas.acp_mesh.Reached)."""
    return present(delivery._replace(box_seq=None)._asdict())


# --- processed messages -------------------------


def is_processed(db: Connection, address: str, message_id: str) -> bool:
    return SQL.is_processed(db, recipient=address, message_id=message_id) is not None


def put_processed(db: Connection, address: str, message_id: str, now: str) -> None:
    SQL.put_processed(db, recipient=address, message_id=message_id, processed_at=now)


# --- dead letters and addresses ---------------------------------


def dead(
    db: Connection, address: str, *, human: bool, after: int, limit: int
) -> list[tuple[int, dict[str, Any]]]:
    """The dead letters of the agent's messages, for a human also those of critical, gated and
    human-audit messages, oldest first and including the archive: each with its position in the list
    and the DeadLetter object."""
    asked: dict[str, Any] = {"address": address, "human": human, "after": after, "limit": limit}
    letters = []
    for id, channel, *row in SQL.dead_letters(db, **asked):
        delivery, message = DeliveryState(*row[:6]), MessageRow(*row[6:])
        letters.append((id, _dead(messages.envelope(message), receipt(delivery), channel)))
    for id, recipient, document in SQL.archived_dead_letters(db, **asked):
        kept = orjson.loads(document)
        (final_receipt,) = (entry for entry in kept["receipts"] if entry["recipient"] == recipient)
        # An older release stored absent members as null.
        letters.append((id, _dead(kept["message"], present(final_receipt), "inbox")))
    return sorted(letters, key=lambda letter: letter[0])[:limit]


def _dead(
    message: dict[str, Any], final_receipt: dict[str, Any], channel: Channel
) -> dict[str, Any]:
    return {"message": message, "receipt": final_receipt, "channel": channel}


def count_dead(db: Connection) -> dict[str, int]:
    """The number of dead letters, one per recipient, as `expired`, `failed` and `archived`."""
    return dict(SQL.count_dead_letters(db))


def everyone(db: Connection) -> list[str]:
    """The address of every agent that holds a key or a repo here."""
    return sorted({identity(agent_id) for (agent_id,) in SQL.known_agents(db)})


def is_known(db: Connection, address: str) -> bool:
    """Whether an agent without a box holds a key or a repo, or has a home on another node."""
    alike = SQL.agents_like(db, identity=address)
    return any(same_agent(known_id, address) for (known_id,) in alike)


def _entries(rows: list[Row]) -> list[InboxEntry]:
    return [InboxEntry(row[0], row[1], row[2], MessageRow._make(row[3:])) for row in rows]


def _next(db: Connection, address: str, now: str) -> int:
    # Two plain statements are faster than one upsert with RETURNING.
    row = db.execute(_HIGH_WATER, (address,)).fetchone()
    if row is None:
        SQL.open_box(db, address=address, created_at=now)
        return 1
    seq = int(row[0]) + 1
    db.execute(_PUT_HIGH_WATER, (seq, address))
    return seq


def _deliver(db: Connection, message_id: str, address: str, seq: int | None) -> None:
    db.execute(_INSERT, (message_id, address, "inbox", seq))
