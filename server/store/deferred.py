"""What peers sent that can't be taken in yet (design §7): deferred, bounded for each peer."""

import sqlite3
from hashlib import sha256
from typing import Literal, NamedTuple

from server.domain.clocks import Deferred
from server.store.sql import SQL

MESSAGES_MAX = 1_000
BYTES_MAX = 32 * 1024 * 1024
"""Of one peer, and its bytes of params: more is not kept, and comes again by the comparisons."""
AGAIN = 30_000_000
"""Microseconds until what waits is tried again."""
SOON = 60_000_000
"""Microseconds: how long what waits for something else may do so before it is worth a word."""
KEPT = 7 * 86_400_000_000
"""Microseconds until what was deferred expires."""
_ACCEPTED = "accepted_until"

Reason = Literal["stamp", "project", "predecessor"]
"""Until it is due, until its project is here, until the fact that it follows on is."""


class DeferredMessage(NamedTuple):
    """A call of a peer. `params` is JSON; `identity` is what makes two of them the same."""

    source: str
    method: str
    params: str
    identity: str

    @property
    def digest(self) -> str:
        return sha256("\n".join((self.source, self.method, self.identity)).encode()).hexdigest()


class DueMessage(NamedTuple):
    """A message that is to be taken in. `due` is a stamp."""

    digest: str
    due: int
    source: str
    method: str
    params: str


class DeferredShare(NamedTuple):
    """How much of one peer is deferred: messages and bytes of their params; `since` is a stamp."""

    source: str
    messages: int
    bytes: int
    since: int


class DeferredEntry(NamedTuple):
    """A deferred message, without its params: why, what it waits `about`, since when and until when
    it waits; both are stamps."""

    method: str
    reason: Reason
    about: str
    bytes: int
    since: int
    due: int


def put(
    db: sqlite3.Connection,
    message: DeferredMessage,
    reason: Reason,
    about: str,
    *,
    due: int,
    now: int,
) -> Literal["deferred", "known", "full"]:
    """Defer a message until `due`, a stamp, or until what it waits `about` comes.

    One that is known is postponed when it is due: it has just been tried. `full`: its peer has as
    many as it may, and this one is not kept.
    """
    digest = message.digest
    known = SQL.deferred_due(db, digest=digest)
    if known is not None:
        if known <= now:
            SQL.postpone_deferred(db, digest=digest, due=max(due, now + AGAIN))
        return "known"
    size = len(message.params.encode())
    count, kept = SQL.deferred_usage(db, source=message.source)
    if count >= MESSAGES_MAX or kept + size > BYTES_MAX:
        return "full"
    SQL.put_deferred(
        db,
        digest=digest,
        due=due,
        source=message.source,
        method=message.method,
        params=message.params,
        reason=reason,
        about=about,
        bytes=size,
        deferred_at=now,
    )
    return "deferred"


def due(db: sqlite3.Connection, now: int, limit: int = 100) -> list[DueMessage]:
    return [DueMessage(*row) for row in SQL.due_messages(db, now=now, limit=limit)]


def postpone(db: sqlite3.Connection, digest: str, due: int) -> None:
    """Keep a message until another time, a stamp."""
    SQL.postpone_deferred(db, digest=digest, due=due)


def wake(db: sqlite3.Connection, about: str) -> None:
    """Have tried again what waits for a predecessor in this contract."""
    SQL.wake_deferred(db, about=about)


def drop(db: sqlite3.Connection, message: DueMessage) -> None:
    """Forget a message that was tried, unless it was deferred anew meanwhile."""
    SQL.drop_deferred(db, digest=message.digest, due=message.due)


def expire(db: sqlite3.Connection, now: int) -> dict[str, int]:
    """Forget what has been deferred for too long: how many messages of each peer."""
    found = dict(SQL.expired_deferred(db, before=now - KEPT))
    if found:
        SQL.drop_expired_deferred(db, before=now - KEPT)
    return found


def ahead(db: sqlite3.Connection, now: int) -> Deferred:
    """What is deferred because of its stamps."""
    return Deferred(*SQL.deferred_ahead(db, now=now))


def waiting(db: sqlite3.Connection, now: int) -> dict[str, int]:
    """How many of each peer, the most first, have waited for something else for longer than it
    should take."""
    return dict(SQL.deferred_waiting(db, before=now - SOON))


def by_source(db: sqlite3.Connection) -> list[DeferredShare]:
    """How much each peer has deferred, the most first."""
    return [DeferredShare(*row) for row in SQL.deferred_by_source(db)]


def of_source(db: sqlite3.Connection, source: str, limit: int = 100) -> list[DeferredEntry]:
    """What a peer has deferred, the oldest first."""
    return [DeferredEntry(*row) for row in SQL.deferred_of(db, source=source, limit=limit)]


def drop_all(db: sqlite3.Connection, source: str) -> int:
    """Forget all that a peer has deferred; how many messages."""
    return int(SQL.drop_deferred_of(db, source=source))


def each(db: sqlite3.Connection, now: int, limit: int = 100) -> list[DueMessage]:
    """What is deferred because of its stamps, one by one."""
    return [DueMessage(*row) for row in SQL.each_deferred(db, now=now, limit=limit)]


def accept(db: sqlite3.Connection, now: int) -> int:
    """Take in now what is deferred because of its stamps, and from now on what is stamped up to the
    last of it and what corrects that; how many messages."""
    found = ahead(db, now)
    if found.messages:
        SQL.put_meta(db, name=_ACCEPTED, value=str(max(found.until + SOON, accepted(db))))
        SQL.accept_deferred(db, now=now)
    return found.messages


def accepted(db: sqlite3.Connection) -> int:
    """As of when an operator has what is deferred taken in; 0 when none ever did."""
    return int(SQL.meta_value(db, name=_ACCEPTED) or 0)


def subjects(db: sqlite3.Connection) -> set[str]:
    """The ids of what is deferred, and of the projects that are unknown here."""
    return {about for (about,) in SQL.deferred_subjects(db)}


def count(db: sqlite3.Connection) -> int:
    return int(SQL.count_deferred(db))
