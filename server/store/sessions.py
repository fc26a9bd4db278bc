"""What the sessions of agents were shown of what waits for them. It is this node's own: it is
neither replicated nor exported."""

from collections.abc import Iterable, Mapping

from server.domain.session_feed import ShownOnce
from server.store.connection import Connection
from server.store.sql import SQL


def entries(db: Connection, address: str, session: str) -> dict[str, ShownOnce]:
    """What a session was shown, by the id of the entry."""
    rows = SQL.session_entries(db, address=address, session=session)
    return {row[0]: ShownOnce(row[1], bool(row[2]), bool(row[3])) for row in rows}


def put(db: Connection, address: str, session: str, shown: Mapping[str, ShownOnce]) -> None:
    """Note what a session was shown."""
    for entry, state in shown.items():
        SQL.put_session_entry(db, address=address, session=session, entry=entry, **state._asdict())


def drop(db: Connection, address: str, session: str, entry_ids: Iterable[str]) -> None:
    """Forget that a session was shown these entries."""
    for entry in entry_ids:
        SQL.drop_session_entry(db, address=address, session=session, entry=entry)


def expire(db: Connection, before: int) -> int:
    """Forget what was shown before a stamp; returns how many entries."""
    return int(SQL.expire_session_entries(db, before=before))


def drop_older(db: Connection, address: str, most: int) -> None:
    """Forget all but the `most` sessions of an agent that were shown something last."""
    SQL.drop_older_sessions(db, address=address, most=most)
