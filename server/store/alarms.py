"""Alarms about damaged or contradicting content, until it is repaired or an operator acknowledges
them.

`/health` reports an alarm as long as its row exists.
"""

from typing import Literal, NamedTuple

from server.store.connection import Connection
from server.store.sql import SQL

Reason = Literal["content_corrupt", "content_differs", "equivocation"]


class Alarm(NamedTuple):
    """`about` names what is affected; `detail` says what is wrong and what to do. For a damaged
    entity, `sound` is the digest of what was written, `damaged` that of what is stored."""

    reason: Reason
    about: str
    detail: str
    raised_at: int
    sound: str = ""
    damaged: str = ""


def begin(db: Connection, alarm: Alarm) -> bool:
    """Raise an alarm. False when it was raised already."""
    return bool(SQL.raise_alarm(db, **alarm._asdict()))


def end(db: Connection, reason: Reason, about: str) -> bool:
    """Remove an alarm. False when there was none."""
    return bool(SQL.end_alarm(db, reason=reason, about=about))


def find(db: Connection, reason: Reason, about: str) -> Alarm | None:
    row = SQL.find_alarm(db, reason=reason, about=about)
    return None if row is None else Alarm(*row)


def every(db: Connection) -> list[Alarm]:
    """All alarms, the oldest first, at most a thousand."""
    return [Alarm(*row) for row in SQL.every_alarm(db)]


def counts(db: Connection) -> dict[str, int]:
    return dict(SQL.count_alarms(db))
