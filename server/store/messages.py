"""ACP messages and their threads (acp-canonical §9)."""

import sqlite3
from typing import Any, NamedTuple

import orjson

from schemas.acp import PROTOCOL, ACPMessageStatus
from server.domain.acp.threads import Pending, Thread, ThreadParty
from server.domain.agents import identity
from server.store.sql import SQL, plain

# On the hot path.
_INSERT = plain(SQL.insert_message)
_THREAD = plain(SQL.thread)
_PUT_THREAD = plain(SQL.put_thread)
_PARTY = plain(SQL.thread_party)
_PUT_PARTY = plain(SQL.put_thread_party)
_PUT_HEARD = plain(SQL.put_heard_in_thread)
NEWEST = "~"
"""After every id."""


class MessageRow(NamedTuple):
    """A row of `messages`. `*_json` are JSON, times ISO 8601 UTC."""

    id: str
    version: str
    from_agent: str
    to_agents_json: str
    team: str | None
    reply_to: str | None
    thread_id: str | None
    type: str
    topic: str | None
    priority: str
    status: ACPMessageStatus
    payload_json: str
    policy_json: str
    context_json: str | None
    external_refs_json: str | None
    sequence: int | None
    expires_at: str | None
    created_at: str
    updated_at: str | None
    hop: int
    held: str | None


def insert(db: sqlite3.Connection, message: MessageRow, payload_bytes: int, thread: str) -> None:
    """Keep a new message, of the thread with this id."""
    db.execute(_INSERT, (*message, payload_bytes, thread))


def find(db: sqlite3.Connection, message_id: str) -> MessageRow | None:
    row = SQL.message(db, id=message_id)
    return MessageRow(*row) if row else None


def put_status(db: sqlite3.Connection, message_id: str, status: ACPMessageStatus, now: str) -> None:
    SQL.put_message_status(db, id=message_id, status=status, updated_at=now)


def put_sequence(db: sqlite3.Connection, message_id: str, sequence: int, now: str) -> None:
    SQL.put_sequence(db, id=message_id, sequence=sequence, updated_at=now)


def put_held(db: sqlite3.Connection, message_id: str, held: str | None, now: str) -> None:
    """Note what keeps the message from its recipients; None when nothing does any more."""
    SQL.put_held(db, id=message_id, held=held, updated_at=now)


def envelope(row: MessageRow) -> dict[str, Any]:
    """The ACPMessageEnvelope (§4), ready for orjson; absent members are left out."""
    context: dict[str, Any] = orjson.loads(row.context_json) if row.context_json else {}
    if row.external_refs_json is not None:
        context["external_refs"] = orjson.Fragment(row.external_refs_json)
    whole = {
        "id": row.id,
        "protocol": PROTOCOL,
        "version": row.version,
        "from": row.from_agent,
        "to": orjson.Fragment(row.to_agents_json),
        "team": row.team,
        "thread_id": row.thread_id,
        "reply_to": row.reply_to,
        "type": row.type,
        "topic": row.topic,
        "priority": row.priority,
        "status": row.status,
        "sequence": row.sequence,
        "expires_at": row.expires_at,
        "payload": orjson.Fragment(row.payload_json),
        "policy": orjson.Fragment(row.policy_json),
        "context": context or None,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
    return {name: value for name, value in whole.items() if value is not None}


# --- threads ----------------------------------------------------


# A thread's id is that of the message that began it; `thread_id` of a message is the thread's name,
# which others may use for one of their own (`server.domain.acp.threads`).


def thread_of(db: sqlite3.Connection, message_id: str) -> str:
    """The id of the thread that a message is of."""
    return SQL.thread_of(db, message_id=message_id) or message_id


def thread(db: sqlite3.Connection, id: str) -> Thread | None:
    row = db.execute(_THREAD, (id,)).fetchone()
    return Thread(*row) if row else None


def threads_named(db: sqlite3.Connection, name: str) -> list[tuple[str, Thread]]:
    """Every thread of this name and its id, the oldest first."""
    return [(row[0], Thread(*row[1:])) for row in SQL.threads_named(db, name=name)]


def put_thread(db: sqlite3.Connection, id: str, name: str, thread: Thread) -> None:
    db.execute(_PUT_THREAD, (id, name, *thread))


def party(db: sqlite3.Connection, thread: str, address: str) -> ThreadParty:
    row = db.execute(_PARTY, (thread, address)).fetchone()
    return ThreadParty(*row) if row else ThreadParty()


def put_party(db: sqlite3.Connection, thread: str, address: str, party: ThreadParty) -> None:
    db.execute(_PUT_PARTY, (thread, address, *party))


def put_heard(db: sqlite3.Connection, thread: str, address: str, hop: int) -> None:
    """Note that a message of this hop by another party has come to the agent."""
    db.execute(_PUT_HEARD, (thread, address, hop))


def spoke(db: sqlite3.Connection, thread: str, address: str) -> bool:
    """Whether the agent has sent a message of the thread."""
    return SQL.spoke_in_thread(db, thread=thread, address=address) is not None


def was_sent(db: sqlite3.Connection, thread: str, address: str) -> bool:
    """Whether a message of the thread went to the agent, as far as this node knows."""
    return SQL.sent_to_in_thread(db, thread=thread, address=address) is not None


def pending(db: sqlite3.Connection, thread: str, after: int) -> list[Pending]:
    """The numbered messages of the thread that are held, and those that ended with a number behind
    `after` and were never delivered."""
    rows = SQL.pending_messages(db, thread=thread, sequence=after)
    return [Pending(row[0], identity(row[1]), row[2], row[3]) for row in rows]


# --- the sender's own ids ---------------------------------------


def sent_as(db: sqlite3.Connection, sender: str, client_id: str) -> tuple[str, str] | None:
    """The message that the sender's own id stands for, and the hash of what it sent."""
    row = SQL.client_id(db, sender=sender, client_id=client_id)
    return (row[0], row[1]) if row else None


def put_client_id(
    db: sqlite3.Connection, sender: str, client_id: str, message_id: str, hash: str, now: str
) -> None:
    SQL.put_client_id(
        db, sender=sender, client_id=client_id, message_id=message_id, hash=hash, created_at=now
    )


# --- looking and ageing -----------------------------------------


def found(
    db: sqlite3.Connection, *, address: str, human: bool, before: str | None, **filters: Any
) -> list[MessageRow]:
    """The messages that pass the filters and that the agent may see, newest first.

    It sees what it sent and what came into its box; a human also what is critical, gated or for
    human audit (§10.2).
    """
    rows = SQL.messages_found(db, address=address, human=human, before=before or NEWEST, **filters)
    return [MessageRow(*row) for row in rows]


def gated(db: sqlite3.Connection, after: str, limit: int) -> list[MessageRow]:
    """The messages behind this id that wait for a human, oldest first."""
    return [MessageRow(*row) for row in SQL.gated_messages(db, after=after, limit=limit)]


def gated_count(db: sqlite3.Connection, sender: str) -> int:
    """How many messages of a sender, an address, wait for a human."""
    return int(SQL.gated_count(db, sender=sender))


def due(db: sqlite3.Connection, now: str, limit: int) -> list[str]:
    """The ids of messages that expire by `now`, the earliest first."""
    return [message_id for (message_id,) in SQL.expiring_messages(db, now=now, limit=limit)]


def next_expiry(db: sqlite3.Connection) -> str | None:
    """When the next message expires."""
    found: str | None = SQL.next_expiry(db)
    return found


def old(db: sqlite3.Connection, before: str, limit: int) -> list[str]:
    """The ids of the oldest messages, as far as they were made before that time."""
    return [message_id for (message_id,) in SQL.old_messages(db, before=before, limit=limit)]


def unread(db: sqlite3.Connection, before: str, limit: int) -> list[str]:
    """The ids of messages that were made before that time and have not come to their end."""
    return [message_id for (message_id,) in SQL.unread_messages(db, before=before, limit=limit)]


def archive(
    db: sqlite3.Connection,
    message_id: str,
    document: bytes,
    now: str,
    *,
    sender: str | None = None,
    open_to_humans: bool = False,
) -> None:
    """Move a message, with what is known of its deliveries, to the archive (§12.7). What of it did
    not arrive is a dead letter of this `sender` still, an address."""
    SQL.archive_message(db, id=message_id, archived_at=now, document=document.decode())
    if sender is not None:
        SQL.archive_dead_letters(
            db, message_id=message_id, sender=sender, open_to_humans=int(open_to_humans)
        )
    thread = thread_of(db, message_id)
    SQL.purge_message(db, id=message_id)
    # Who had a part in a thread is not known without its messages: it ends with the last of them.
    SQL.forget_thread(db, id=thread)


def archived(db: sqlite3.Connection, message_id: str) -> dict[str, Any] | None:
    """An archived message's envelope and receipts, as {message, receipts}."""
    document = SQL.archived_document(db, id=message_id)
    return orjson.loads(document) if document else None


def forget(db: sqlite3.Connection, before: str) -> None:
    """Forget the senders' own ids, and what was processed, of before that time."""
    SQL.forget_client_ids(db, before=before)
    SQL.forget_processed(db, before=before)
