"""Sessions of the page, and the one-time links that begin them (`server.domain.page_session`). Both
are this node's own; of tokens and codes only hashes are stored."""

from typing import NamedTuple

from server.domain.page_session import PageSession
from server.store.connection import Connection
from server.store.sql import SQL, Row


class PageLink(NamedTuple):
    """A one-time link that was not opened yet. Times are stamps."""

    key_hash: str
    made_at: int
    expires_at: int


def find(db: Connection, shown_hash: str) -> PageSession | None:
    """The session whose current or former token has this hash."""
    return _read(SQL.page_session(db, hash=shown_hash))


def by_id(db: Connection, session_id: str) -> PageSession | None:
    return _read(SQL.page_session_by_id(db, session_id=session_id))


def put(db: Connection, session: PageSession) -> None:
    """Store a session, or what has changed of it."""
    SQL.put_page_session(db, **session._asdict())


def end(db: Connection, session_id: str) -> bool:
    """End a session. False when there is none."""
    return bool(SQL.end_page_session(db, session_id=session_id))


def end_all_of(db: Connection, agent: str) -> int:
    """End all sessions of an agent; returns how many."""
    return int(SQL.end_page_sessions_of(db, agent=agent))


def end_older(db: Connection, agent: str, most: int) -> None:
    """End all but the `most` sessions of an agent that were used last."""
    SQL.end_older_page_sessions(db, agent=agent, most=most)


def sweep(db: Connection, sure: int) -> None:
    """Delete the sessions and links that have certainly expired."""
    SQL.sweep_page_sessions(db, sure=sure)
    SQL.sweep_page_links(db, sure=sure)


def put_link(db: Connection, code_hash: str, link: PageLink, most: int) -> None:
    """Store a link; of its key only the `most` newest stay."""
    SQL.put_page_link(db, code_hash=code_hash, **link._asdict())
    SQL.drop_older_page_links(db, key_hash=link.key_hash, most=most)


def take_link(db: Connection, code_hash: str) -> PageLink | None:
    """The link with this code, which is gone with this; None when there is none."""
    row: Row | None = SQL.page_link(db, code_hash=code_hash)
    if row is None:
        return None
    SQL.drop_page_link(db, code_hash=code_hash)
    return PageLink(*row)


def _read(row: Row | None) -> PageSession | None:
    return None if row is None else PageSession._make([*row[:5], bool(row[5]), *row[6:]])
