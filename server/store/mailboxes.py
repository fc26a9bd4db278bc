"""Each agent's box, and how far each message is with each recipient (acp-canonical §9, §12.5).

An agent's address is its id without a version: a newer release reads what came for the older.
"""

import sqlite3
from typing import Any, NamedTuple

import orjson

from schemas.acp import ACPMessageStatus
from schemas.base import present
from server.domain.acp.routing import Channel
from server.domain.agents import identity, same_agent
from server.store import messages
from server.store.messages import MessageRow
from server.store.sql import SQL, plain

# On the hot path.
_HIGH_WATER = plain(SQL.high_water)
_PUT_HIGH_WATER = plain(SQL.put_high_water)
_BOX = plain(SQL.mailbox)
_DELIVERIES = plain(SQL.deliveries)
_INSERT = plain(SQL.insert_delivery)


class Box(NamedTuple):
    """`high_water` is all that ever came in; what is in none of the others is unread."""

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


class Delivery(NamedTuple):
    """How far a message is with one recipient. `box_seq` is None while it is held."""

    recipient: str
    status: ACPMessageStatus = "pending"
    delivered_at: str | None = None
    read_at: str | None = None
    error: str | None = None
    box_seq: int | None = None


class InboxEntry(NamedTuple):
    """A message in a box; `status` is this recipient's."""

    seq: int
    status: ACPMessageStatus
    message: MessageRow


def box(db: sqlite3.Connection, address: str) -> Box | None:
    row = db.execute(_BOX, (address,)).fetchone()
    return Box(*row) if row else None


def count(
    db: sqlite3.Connection, address: str, *, read: int = 0, expired: int = 0, failed: int = 0
) -> None:
    """Count what became of messages in a box."""
    SQL.count_in_box(db, address=address, read_count=read, expired=expired, failed=failed)


def hold(db: sqlite3.Connection, message_id: str, address: str) -> None:
    """Note that a message is for this recipient, without putting it into the box."""
    _deliver(db, message_id, address, None)


def put(db: sqlite3.Connection, message_id: str, address: str, now: str) -> None:
    """Put a new message into a box, which is made when it is the first."""
    _deliver(db, message_id, address, _next(db, address, now))


def put_held(db: sqlite3.Connection, message_id: str, address: str, now: str) -> None:
    """Put a message that was held into a box."""
    seq = _next(db, address, now)
    SQL.put_box_seq(db, message_id=message_id, recipient=address, box_seq=seq)


def deliveries(db: sqlite3.Connection, message_id: str) -> list[Delivery]:
    """How far a message is with each recipient, in the order in which they were named."""
    return [Delivery(*row) for row in db.execute(_DELIVERIES, (message_id,))]


def delivery(db: sqlite3.Connection, message_id: str, address: str) -> Delivery | None:
    row = SQL.delivery(db, message_id=message_id, recipient=address)
    return Delivery(*row) if row else None


def put_delivery(
    db: sqlite3.Connection,
    message_id: str,
    address: str,
    status: ACPMessageStatus,
    now: str,
    error: str | None = None,
) -> None:
    """Note how far a message is with a recipient; the time of what it has reached is `now`."""
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
    db: sqlite3.Connection, address: str, after: int, now: str, limit: int
) -> list[InboxEntry]:
    """What is in the box after a number, not read and not expired."""
    rows = SQL.unread_box(db, address=address, after=after, now=now, limit=limit)
    return [InboxEntry(row[0], row[1], MessageRow(*row[2:])) for row in rows]


def all_(db: sqlite3.Connection, address: str, after: int, limit: int) -> list[InboxEntry]:
    """What is in the box after a number, whatever became of it."""
    rows = SQL.whole_box(db, address=address, after=after, limit=limit)
    return [InboxEntry(row[0], row[1], MessageRow(*row[2:])) for row in rows]


def receipt(delivery: Delivery) -> dict[str, Any]:
    """The Receipt object."""
    shown = {
        "recipient": delivery.recipient,
        "status": delivery.status,
        "deliveredAt": delivery.delivered_at,
        "readAt": delivery.read_at,
        "error": delivery.error,
    }
    return present(shown)


def receipts(db: sqlite3.Connection, message_id: str) -> list[dict[str, Any]]:
    """The Receipt objects of a message."""
    return [receipt(one) for one in deliveries(db, message_id)]


def whole(db: sqlite3.Connection, message: MessageRow) -> bytes:
    """A message's envelope and receipts, as the archive keeps them: {message, receipts}, JSON."""
    return orjson.dumps(
        {"message": messages.envelope(message), "receipts": receipts(db, message.id)}
    )


def reached(delivery: Delivery) -> dict[str, Any]:
    """The same as nodes tell each other (schemas.acp_mesh.Reached)."""
    return present(delivery._replace(box_seq=None)._asdict())


# --- the registry of what was processed -------------------------


def is_processed(db: sqlite3.Connection, address: str, message_id: str) -> bool:
    return SQL.is_processed(db, recipient=address, message_id=message_id) is not None


def put_processed(db: sqlite3.Connection, address: str, message_id: str, now: str) -> None:
    SQL.put_processed(db, recipient=address, message_id=message_id, processed_at=now)


# --- dead letters and addresses ---------------------------------


def dead(
    db: sqlite3.Connection, address: str, *, human: bool, after: int, limit: int
) -> list[tuple[int, dict[str, Any]]]:
    """What did not arrive of what the agent sent, for a human also what is critical, gated or for
    human audit, oldest first and from the archive too: the place in the list, and the DeadLetter
    object."""
    asked: dict[str, Any] = {"address": address, "human": human, "after": after, "limit": limit}
    found = [
        (
            row[0],
            _dead(messages.envelope(MessageRow(*row[8:])), receipt(Delivery(*row[2:8])), row[1]),
        )
        for row in SQL.dead_letters(db, **asked)
    ]
    for id, recipient, document in SQL.archived_dead_letters(db, **asked):
        kept = orjson.loads(document)
        (told,) = (one for one in kept["receipts"] if one["recipient"] == recipient)
        # An older release kept what is absent as null.
        found.append((id, _dead(kept["message"], present(told), "inbox")))
    return sorted(found, key=lambda one: one[0])[:limit]


def _dead(message: dict[str, Any], told: dict[str, Any], channel: Channel) -> dict[str, Any]:
    return {"message": message, "receipt": told, "channel": channel}


def count_dead(db: sqlite3.Connection) -> dict[str, int]:
    """How many did not arrive, a recipient each: `expired`, `failed`, and `archived` since."""
    return dict(SQL.count_dead_letters(db))


def everyone(db: sqlite3.Connection) -> list[str]:
    """The address of every agent that this node knows by a key or a repo that it holds."""
    return sorted({identity(agent_id) for (agent_id,) in SQL.known_agents(db)})


def is_known(db: sqlite3.Connection, address: str) -> bool:
    """Whether an agent without a box holds a key or a repo, or has a home on another node."""
    alike = SQL.agents_like(db, identity=address)
    return any(same_agent(found, address) for (found,) in alike)


def _next(db: sqlite3.Connection, address: str, now: str) -> int:
    # Two plain statements cost less than one that inserts or updates, and returns.
    row = db.execute(_HIGH_WATER, (address,)).fetchone()
    if row is None:
        SQL.open_box(db, address=address, created_at=now)
        return 1
    seq = int(row[0]) + 1
    db.execute(_PUT_HIGH_WATER, (seq, address))
    return seq


def _deliver(db: sqlite3.Connection, message_id: str, address: str, seq: int | None) -> None:
    db.execute(_INSERT, (message_id, address, "inbox", seq))
