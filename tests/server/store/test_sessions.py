"""What sessions were shown is noted by agent and session, and expires."""

import sqlite3

from server.domain.session_feed import ShownOnce
from server.store import sessions

A, B = "aid://example.com/a", "aid://example.com/b"


def test_notes_of_a_session_are_its_own(db: sqlite3.Connection) -> None:
    sessions.put(db, A, "s1", {"x": ShownOnce(5), "y": ShownOnce(6, held=True)})
    sessions.put(db, A, "s2", {"x": ShownOnce(7, lost=True)})
    sessions.put(db, A, "s1", {"x": ShownOnce(8, held=True)})
    assert sessions.entries(db, A, "s1") == {
        "x": ShownOnce(8, held=True),
        "y": ShownOnce(6, held=True),
    }
    assert sessions.entries(db, A, "s2") == {"x": ShownOnce(7, lost=True)}
    assert sessions.entries(db, B, "s1") == {}
    sessions.drop(db, A, "s1", ["x", "z"])
    assert set(sessions.entries(db, A, "s1")) == {"y"}


def test_notes_expire(db: sqlite3.Connection) -> None:
    sessions.put(db, A, "s", {"x": ShownOnce(5), "y": ShownOnce(6)})
    assert sessions.expire(db, 6) == 1
    assert set(sessions.entries(db, A, "s")) == {"y"}
