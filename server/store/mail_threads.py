"""Lists of mail threads, and the messages of one (acp-canonical §10.2, §12.5).

A reader sees of a thread what it sent and what is in its mailbox; a human also sees critical, gated
and human-audit messages.
"""

from typing import NamedTuple

import orjson

from server.store.connection import Connection
from server.store.messages import NEWEST, MessageRow
from server.store.sql import SQL

COUNTED_MAX = 100
"""How many messages of a thread are counted, from the last one."""


class ListedThread(NamedTuple):
    """A thread, and the last message of it that the reader may see."""

    thread_id: str
    last: str


class ThreadCounts(NamedTuple):
    """How many messages of a thread the reader may see, and how many of these it has not read; up
    to the limit."""

    messages: int
    unread: int


def listed(
    db: Connection, address: str, *, human: bool, before: str | None, limit: int
) -> list[ListedThread]:
    """The threads of an agent, for a human also those that are open to humans, the newest first;
    after the one whose last message is `before`."""
    asked = {"address": address, "before": before or NEWEST, "limit": limit}
    rows = list(SQL.threads_of_party(db, human=human, **asked))
    if human:
        rows += SQL.threads_open_to_humans(db, **asked)
    listed_threads = [ListedThread(*row) for row in rows]
    return sorted(listed_threads, key=lambda thread: thread.last, reverse=True)[:limit]


def counts(db: Connection, thread: str, address: str, *, human: bool) -> ThreadCounts:
    row = SQL.thread_counts(db, thread=thread, address=address, human=human, most=COUNTED_MAX)
    return ThreadCounts(*row)


def topic(db: Connection, thread: str, address: str, *, human: bool) -> str:
    """What a thread is about: the topic or summary of the first message that the reader may see."""
    row = SQL.first_seen_of_thread(db, thread=thread, address=address, human=human)
    if row is None:
        return ""
    return str(row[0] or orjson.loads(row[1]).get("summary") or "")


def seen(
    db: Connection,
    thread: str,
    address: str,
    *,
    human: bool,
    before: str | None,
    limit: int,
) -> list[MessageRow]:
    """The messages of a thread that the reader may see, the last first, before the message
    `before`."""
    rows = SQL.messages_seen_of_thread(
        db, thread=thread, address=address, human=human, before=before or NEWEST, limit=limit
    )
    return [MessageRow(*row) for row in rows]
