"""The change log, which serves as event stream, as queue for peers and as audit (design §4)."""

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from server.store.connection import Connection
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
    db: Connection,
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


def after(db: Connection, seq: int, limit: int) -> list[Change]:
    return [Change(*row) for row in SQL.changes_after(db, seq=seq, limit=limit)]


class ChangeFilter(NamedTuple):
    """Which changes are wanted; None stands for any. `projects` are those that the reader may see,
    `agent` is without a version, `repo` is a name."""

    kinds: Iterable[str]
    projects: Iterable[str] | None = None
    project_id: str | None = None
    agent: str | None = None
    repo: str | None = None


def before(
    db: Connection, wanted: ChangeFilter, seq: int, *, floor: int, limit: int
) -> list[Change]:
    """The changes before `seq`, the newest first, down to the number `floor`."""
    rows = SQL.changes_before(
        db,
        before=seq,
        floor=floor,
        projects=None if wanted.projects is None else _json(wanted.projects),
        project_id=wanted.project_id,
        kinds=_json(wanted.kinds),
        agent=wanted.agent,
        repo=wanted.repo,
        limit=limit,
    )
    return [Change(*row) for row in rows]


def _json(values: Iterable[str]) -> str:
    return orjson.dumps(sorted(values)).decode()


def time_of(db: Connection, seq: int) -> int | None:
    """The stamp of the change with this number, or of the next one."""
    return SQL.time_of_change(db, seq=seq)  # type: ignore[no-any-return]


def newest(db: Connection) -> int:
    """The newest sequence number; 0 when nothing has changed yet."""
    return int(SQL.newest_change(db))


def epoch(db: Connection) -> str:
    return str(SQL.meta_value(db, name="epoch"))


def can_read(db: Connection) -> bool:
    """Read one row; raises as any read does when the file can't be read."""
    return int(SQL.can_read(db)) > 0


def put_meta(db: Connection, name: str, value: str) -> None:
    SQL.put_meta(db, name=name, value=value)


def conflicts_by_origin(db: Connection) -> dict[str, int]:
    """How many conflicts were found in what each node sent."""
    return dict(SQL.conflicts_by_origin(db))
