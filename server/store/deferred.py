"""Messages of peers that can't be taken in yet (design §7), with a limit for each peer."""

from hashlib import sha256
from typing import Literal, NamedTuple

from server.domain.clocks import Deferred
from server.store.connection import Connection
from server.store.sql import SQL

MESSAGES_MAX = 1_000
BYTES_MAX = 32 * 1024 * 1024
"""Limits for each peer: messages, and bytes of their params. Comparisons fetch the rest again."""
AGAIN = 30_000_000
"""Microseconds until a deferred message is tried again."""
SOON = 60_000_000
"""Microseconds that a message may wait for another entity before `waiting` reports it."""
KEPT = 7 * 86_400_000_000
"""Microseconds until a deferred message expires."""
_ACCEPTED = "accepted_until"

Reason = Literal["stamp", "project", "predecessor"]
"""What it waits for: its stamp to be due, its project, or the fact that it follows on."""


class DeferredMessage(NamedTuple):
    """A call of a peer. `params` is JSON; calls with the same `identity` are the same."""

    source: str
    method: str
    params: str
    identity: str

    @property
    def digest(self) -> str:
        return sha256("\n".join((self.source, self.method, self.identity)).encode()).hexdigest()


class DueMessage(NamedTuple):
    """A message that is due to be taken in. `due` is a stamp."""

    digest: str
    due: int
    source: str
    method: str
    params: str


class DeferredShare(NamedTuple):
    """How much one peer has deferred: messages, and bytes of their params. `since` is a stamp."""

    source: str
    messages: int
    bytes: int
    since: int


class DeferredEntry(NamedTuple):
    """A deferred message without its params: the reason, the entity that it waits for (`about`),
    and since when and until when it waits, as stamps."""

    method: str
    reason: Reason
    about: str
    bytes: int
    since: int
    due: int


def put(
    db: Connection,
    message: DeferredMessage,
    reason: Reason,
    about: str,
    *,
    due: int,
    now: int,
) -> Literal["deferred", "known", "full"]:
    """Defer a message until `due`, a stamp, or until the entity `about` arrives.

    A known message that is due has just been tried, and is postponed. `full`: its peer has reached
    the limit, and the message is not kept.
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


def due(db: Connection, now: int, limit: int = 100) -> list[DueMessage]:
    return [DueMessage(*row) for row in SQL.due_messages(db, now=now, limit=limit)]


def postpone(db: Connection, digest: str, due: int) -> None:
    """Postpone a message until `due`, a stamp."""
    SQL.postpone_deferred(db, digest=digest, due=due)


def wake(db: Connection, about: str, now: int) -> None:
    """Make due the messages that wait for a predecessor in this contract.

    Each gets a new `due`, so that a worker that is just trying one does not `drop` it.
    """
    SQL.wake_deferred(db, about=about, now=now)


def drop(db: Connection, message: DueMessage) -> None:
    """Delete a message that was tried, unless it was deferred again meanwhile."""
    SQL.drop_deferred(db, digest=message.digest, due=message.due)


def expire(db: Connection, now: int) -> dict[str, int]:
    """Delete expired messages; returns how many of each peer."""
    expired = dict(SQL.expired_deferred(db, before=now - KEPT))
    if expired:
        SQL.drop_expired_deferred(db, before=now - KEPT)
    return expired


def ahead(db: Connection, now: int) -> Deferred:
    """Messages that are deferred because of their stamps."""
    return Deferred(*SQL.deferred_ahead(db, now=now))


def waiting(db: Connection, now: int) -> dict[str, int]:
    """How many messages of each peer, the most first, have waited for another entity for longer
    than SOON."""
    return dict(SQL.deferred_waiting(db, before=now - SOON))


def by_source(db: Connection) -> list[DeferredShare]:
    """The share of each peer, the largest first."""
    return [DeferredShare(*row) for row in SQL.deferred_by_source(db)]


def of_source(db: Connection, source: str, limit: int = 100) -> list[DeferredEntry]:
    """The deferred messages of a peer, the oldest first."""
    return [DeferredEntry(*row) for row in SQL.deferred_of(db, source=source, limit=limit)]


def drop_all(db: Connection, source: str) -> int:
    """Delete all deferred messages of a peer; returns how many."""
    return int(SQL.drop_deferred_of(db, source=source))


def each(db: Connection, now: int, limit: int = 100) -> list[DueMessage]:
    """The messages that are deferred because of their stamps."""
    return [DueMessage(*row) for row in SQL.each_deferred(db, now=now, limit=limit)]


def accept(db: Connection, now: int) -> int:
    """Make due all messages that are deferred because of their stamps, and accept stamps up to the
    last of these, and their corrections, from now on; returns how many messages."""
    early = ahead(db, now)
    if early.messages:
        SQL.put_meta(db, name=_ACCEPTED, value=str(max(early.until + SOON, accepted(db))))
        SQL.accept_deferred(db, now=now)
    return early.messages


def accepted(db: Connection) -> int:
    """The stamp up to which an operator has accepted messages; 0 when none ever did."""
    return int(SQL.meta_value(db, name=_ACCEPTED) or 0)


def subjects(db: Connection) -> set[str]:
    """The ids of deferred entities and of the unknown projects that they wait for."""
    return {about for (about,) in SQL.deferred_subjects(db)}


def count(db: Connection) -> int:
    return int(SQL.count_deferred(db))
