"""What sessions were shown is noted by agent and session, and expires."""

from server.domain.session_feed import ShownOnce
from server.store import sessions
from server.store.connection import Connection

A, B = "aid://example.com/a", "aid://example.com/b"


def test_notes_of_a_session_are_its_own(db: Connection) -> None:
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


def test_notes_expire(db: Connection) -> None:
    sessions.put(db, A, "s", {"x": ShownOnce(5), "y": ShownOnce(6)})
    assert sessions.expire(db, 6) == 1
    assert set(sessions.entries(db, A, "s")) == {"y"}


def test_of_an_agent_the_last_sessions_are_remembered(db: Connection) -> None:
    """Their names are whatever a caller says, so it could fill the disk."""
    for place in range(5):
        sessions.put(db, A, f"s{place}", {"x": ShownOnce(place), "y": ShownOnce(9 - place)})
    sessions.put(db, B, "s0", {"x": ShownOnce(0)})
    sessions.drop_older(db, A, 2)
    assert [place for place in range(5) if sessions.entries(db, A, f"s{place}")] == [0, 1]
    assert sessions.entries(db, B, "s0")
