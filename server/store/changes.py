"""The change log, which serves as event stream, as queue for peers and as audit (design §4)."""

import sqlite3
from typing import NamedTuple

from server.store.sql import SQL, plain

# On the hot path.
_APPEND = plain(SQL.append_change)


class Change(NamedTuple):
    """One change. `at` is a stamp; `origin` is the node that made it."""

    seq: int
    at: int
    origin: str
    actor: str
    action: str
    entity: str
    entity_id: str
    project_id: str | None
    outcome: str


def append(
    db: sqlite3.Connection,
    *,
    at: int,
    origin: str,
    actor: str,
    action: str,
    entity: str,
    entity_id: str,
    project_id: str | None,
    outcome: str,
) -> None:
    db.execute(_APPEND, (at, origin, actor, action, entity, entity_id, project_id, outcome))


def after(db: sqlite3.Connection, seq: int, limit: int) -> list[Change]:
    return [Change(*row) for row in SQL.changes_after(db, seq=seq, limit=limit)]


def newest(db: sqlite3.Connection) -> int:
    """The newest sequence number; 0 when nothing has changed yet."""
    return int(SQL.newest_change(db))


def epoch(db: sqlite3.Connection) -> str:
    return str(SQL.meta_value(db, name="epoch"))


def can_read(db: sqlite3.Connection) -> bool:
    """Read one row; raises as any read does when the file can't be read."""
    return int(SQL.can_read(db)) > 0


def put_meta(db: sqlite3.Connection, name: str, value: str) -> None:
    SQL.put_meta(db, name=name, value=value)


def conflicts_by_origin(db: sqlite3.Connection) -> dict[str, int]:
    """How many conflicts were found in what each node sent."""
    return dict(SQL.conflicts_by_origin(db))
