"""What is wrong with content that is held here or was sent, until it is mended or acknowledged.

`/health` says so as long as a row is there.
"""

import sqlite3
from typing import Literal, NamedTuple

from server.store.sql import SQL

Reason = Literal["content_corrupt", "content_differs", "equivocation"]


class Alarm(NamedTuple):
    """`about` names what is wrong, `detail` says in words what it is and what to do. Of a damaged
    entity, `sound` is the digest of what was written, `damaged` that of what was found."""

    reason: Reason
    about: str
    detail: str
    raised_at: int
    sound: str = ""
    damaged: str = ""


def begin(db: sqlite3.Connection, alarm: Alarm) -> bool:
    """Whether it is new."""
    return bool(SQL.raise_alarm(db, **alarm._asdict()))


def end(db: sqlite3.Connection, reason: Reason, about: str) -> bool:
    """False when there was none."""
    return bool(SQL.end_alarm(db, reason=reason, about=about))


def find(db: sqlite3.Connection, reason: Reason, about: str) -> Alarm | None:
    row = SQL.find_alarm(db, reason=reason, about=about)
    return None if row is None else Alarm(*row)


def every(db: sqlite3.Connection) -> list[Alarm]:
    """The oldest first, a thousand at most."""
    return [Alarm(*row) for row in SQL.every_alarm(db)]


def counts(db: sqlite3.Connection) -> dict[str, int]:
    return dict(SQL.count_alarms(db))
