"""ACP messages and their threads (acp-canonical §9)."""

from typing import Any, NamedTuple, cast

import orjson

from schemas.acp import PROTOCOL, ACPMessageStatus, ACPPolicy, ACPPriority
from server.domain.acp import policy
from server.domain.acp.threads import Pending, Thread, ThreadParty
from server.domain.agents import identity
from server.store import attention_index
from server.store.connection import Connection
from server.store.sql import SQL, plain

# On the hot path.
_INSERT = plain(SQL.insert_message)
_QUEUE = plain(SQL.queue_message_for_search)
_THREAD = plain(SQL.thread)
_PUT_THREAD = plain(SQL.put_thread)
_INSERT_THREAD = plain(SQL.insert_thread)
_INSERT_PARTY = plain(SQL.insert_thread_party)
_PARTY = plain(SQL.thread_party)
_PUT_PARTY = plain(SQL.put_thread_party)
_PUT_HEARD = plain(SQL.put_heard_in_thread)
NEWEST = "~"
"""Sorts after every id."""


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


def insert(db: Connection, message: MessageRow, payload_bytes: int, thread: str) -> None:
    """Insert a message into the thread with this id."""
    db.execute(_INSERT, (*message, payload_bytes, thread))
    queue_for_search(db, message.id)
    attention_index.note_message(
        db,
        message.id,
        message.from_agent,
        message.type,
        message.reply_to,
        message.payload_json,
    )


def queue_for_search(db: Connection, message_id: str) -> None:
    """Have a message indexed for full-text search: it is new, has expired or got a recipient
    later."""
    db.execute(_QUEUE, (message_id,))


def find(db: Connection, message_id: str) -> MessageRow | None:
    row = SQL.message(db, id=message_id)
    return MessageRow(*row) if row else None


def is_open_to_humans(db: Connection, message_id: str) -> bool:
    """Whether humans who audit mail may see a message."""
    message = find(db, message_id)
    return message is not None and policy.is_open_to_humans(
        ACPPolicy.model_validate_json(message.policy_json), cast(ACPPriority, message.priority)
    )


def put_status(db: Connection, message_id: str, status: ACPMessageStatus, now: str) -> None:
    SQL.put_message_status(db, id=message_id, status=status, updated_at=now)
    if status == "expired":
        queue_for_search(db, message_id)


def put_sequence(db: Connection, message_id: str, sequence: int, now: str) -> None:
    SQL.put_sequence(db, id=message_id, sequence=sequence, updated_at=now)


def put_held(db: Connection, message_id: str, held: str | None, now: str) -> None:
    """Set why the message is held back (`gate`, `quarantine`); None once it is not."""
    SQL.put_held(db, id=message_id, held=held, updated_at=now)


def envelope(row: MessageRow) -> dict[str, Any]:
    """The ACPMessageEnvelope (§4), ready for orjson, without absent members."""
    (
        id, version, sender, to, team, reply_to, thread_id, type, topic, priority, status,
        payload, policy_json, context, refs, sequence, expires_at, created_at, updated_at, _, _,
    ) = row  # fmt: skip
    # A page has many: for each it is faster to test each member than to filter the whole.
    whole: dict[str, Any] = {
        "id": id,
        "protocol": PROTOCOL,
        "version": version,
        "from": sender,
        "to": orjson.Fragment(to),
    }
    if team is not None:
        whole["team"] = team
    if thread_id is not None:
        whole["thread_id"] = thread_id
    if reply_to is not None:
        whole["reply_to"] = reply_to
    whole["type"] = type
    if topic is not None:
        whole["topic"] = topic
    whole["priority"] = priority
    whole["status"] = status
    if sequence is not None:
        whole["sequence"] = sequence
    if expires_at is not None:
        whole["expires_at"] = expires_at
    whole["payload"] = orjson.Fragment(payload)
    whole["policy"] = orjson.Fragment(policy_json)
    if context is not None or refs is not None:
        _put_context(whole, context, refs)
    whole["created_at"] = created_at
    if updated_at is not None:
        whole["updated_at"] = updated_at
    return whole


def _put_context(whole: dict[str, Any], context_json: str | None, refs_json: str | None) -> None:
    context: dict[str, Any] = orjson.loads(context_json) if context_json else {}
    if refs_json is not None:
        context["external_refs"] = orjson.Fragment(refs_json)
    if context:
        whole["context"] = context


# --- threads ----------------------------------------------------


# A thread's id is that of its first message. `thread_id` of a message is the thread's name, which
# other threads may share (`server.domain.acp.threads`).


def thread_of(db: Connection, message_id: str) -> str:
    """The id of a message's thread."""
    return SQL.thread_of(db, message_id=message_id) or message_id


def thread(db: Connection, id: str) -> Thread | None:
    row = db.execute(_THREAD, (id,)).fetchone()
    return Thread(*row) if row else None


def threads_named(db: Connection, name: str) -> list[tuple[str, Thread]]:
    """The ids and threads of this name, the oldest first."""
    return [(row[0], Thread(*row[1:])) for row in SQL.threads_named(db, name=name)]


def put_thread(db: Connection, id: str, name: str, thread: Thread) -> None:
    db.execute(_PUT_THREAD, (id, name, *thread))


def insert_thread(db: Connection, id: str, name: str, thread: Thread) -> None:
    """Insert a thread of which nothing is stored."""
    db.execute(_INSERT_THREAD, (id, name, *thread))


def insert_party(db: Connection, thread: str, address: str, party: ThreadParty, last: str) -> None:
    """Insert a party of which nothing is stored; otherwise as `put_party`."""
    db.execute(_INSERT_PARTY, (thread, address, *party, last))


def party(db: Connection, thread: str, address: str) -> ThreadParty:
    row = db.execute(_PARTY, (thread, address)).fetchone()
    return ThreadParty(*row) if row else ThreadParty()


def put_party(db: Connection, thread: str, address: str, party: ThreadParty, last: str) -> None:
    """Record what a party has done in a thread; `last` is the message that it has sent."""
    db.execute(_PUT_PARTY, (thread, address, *party, last))


def put_heard(db: Connection, thread: str, address: str, hop: int, last: str) -> None:
    """Record that the agent got the message `last`, with this hop, from another party."""
    db.execute(_PUT_HEARD, (thread, address, hop, last))


def row_is_open_to_humans(message: MessageRow) -> bool:
    """As `is_open_to_humans`, read from the row as the queries read it."""
    return (
        message.priority == "critical"
        or '"human-audit"' in message.policy_json
        or '"required"' in message.policy_json
    )


def put_open(db: Connection, thread: str, last: str) -> None:
    """Record that the message `last` of the thread is open to humans."""
    SQL.put_open_in_thread(db, thread=thread, last_open=last)


def spoke(db: Connection, thread: str, address: str) -> bool:
    """Whether the agent has sent a message in the thread."""
    return SQL.spoke_in_thread(db, thread=thread, address=address) is not None


def was_sent(db: Connection, thread: str, address: str) -> bool:
    """Whether the agent was sent a message of the thread, as far as this node knows."""
    return SQL.sent_to_in_thread(db, thread=thread, address=address) is not None


def pending(db: Connection, thread: str, after: int) -> list[Pending]:
    """The numbered messages of the thread that are held, and those with a number above `after` that
    ended undelivered."""
    rows = SQL.pending_messages(db, thread=thread, sequence=after)
    return [Pending(row[0], identity(row[1]), row[2], row[3]) for row in rows]


# --- client ids ---------------------------------------


def sent_as(db: Connection, sender: str, client_id: str) -> tuple[str, str] | None:
    """The id of the message that was sent under this client id, and the fingerprint of its draft;
    None when there is none."""
    row = SQL.client_id(db, sender=sender, client_id=client_id)
    return (row[0], row[1]) if row else None


def put_client_id(
    db: Connection, sender: str, client_id: str, message_id: str, hash: str, now: str
) -> None:
    SQL.put_client_id(
        db, sender=sender, client_id=client_id, message_id=message_id, hash=hash, created_at=now
    )


# --- search, expiry and retention -----------------------------------------


def search(
    db: Connection, *, address: str, human: bool, before: str | None, **filters: Any
) -> list[MessageRow]:
    """The messages that match the filters and that the agent may see, newest first.

    It sees messages that it sent and those in its mailbox; a human also sees critical, gated and
    human-audit messages (§10.2).
    """
    rows = SQL.messages_found(db, address=address, human=human, before=before or NEWEST, **filters)
    return [MessageRow(*row) for row in rows]


def gated(db: Connection, after: str, limit: int) -> list[MessageRow]:
    """The messages after this id that wait for a human, oldest first."""
    return [MessageRow(*row) for row in SQL.gated_messages(db, after=after, limit=limit)]


def gated_count(db: Connection, sender: str) -> int:
    """How many messages of `sender`, an address, wait for a human."""
    return int(SQL.gated_count(db, sender=sender))


def due(db: Connection, now: str, limit: int) -> list[str]:
    """The ids of messages that expire by `now`, the earliest first."""
    return [message_id for (message_id,) in SQL.expiring_messages(db, now=now, limit=limit)]


def next_expiry(db: Connection) -> str | None:
    """When the next message expires; None when none does."""
    expiry: str | None = SQL.next_expiry(db)
    return expiry


def old(db: Connection, before: str, limit: int) -> list[str]:
    """The ids of messages created before that time, the oldest first."""
    return [message_id for (message_id,) in SQL.old_messages(db, before=before, limit=limit)]


def unread(db: Connection, before: str, limit: int) -> list[str]:
    """The ids of messages created before that time that have no final status."""
    return [message_id for (message_id,) in SQL.unread_messages(db, before=before, limit=limit)]


def archive(
    db: Connection,
    message_id: str,
    document: bytes,
    now: str,
    *,
    sender: str | None = None,
    open_to_humans: bool = False,
) -> None:
    """Move a message to the archive (§12.7), as the JSON `document`. Its undelivered copies stay
    dead letters of `sender`, an address."""
    SQL.archive_message(db, id=message_id, archived_at=now, document=document.decode())
    if sender is not None:
        SQL.archive_dead_letters(
            db, message_id=message_id, sender=sender, open_to_humans=int(open_to_humans)
        )
    thread = thread_of(db, message_id)
    SQL.purge_message(db, id=message_id)
    # The parties of a thread are known by its messages, so it ends with the last of them.
    SQL.forget_thread(db, id=thread)


def archived(db: Connection, message_id: str) -> dict[str, Any] | None:
    """An archived message's envelope and receipts, as {message, receipts}."""
    document = SQL.archived_document(db, id=message_id)
    return orjson.loads(document) if document else None


def forget(db: Connection, before: str) -> None:
    """Delete client ids and marks of processed messages from before that time."""
    SQL.forget_client_ids(db, before=before)
    SQL.forget_processed(db, before=before)
