"""What a node remembers of senders (acp-canonical §10.3, §12.4, §12.8)."""

from server.domain.acp.breaker import CLOSED, CircuitBreaker
from server.store import sender_limits
from server.store.connection import Connection
from server.store.sql import SQL


def test_the_times_of_a_sender_are_kept_by_kind(db: Connection) -> None:
    assert sender_limits.stamps(db, "a", "direct") == []
    sender_limits.put_stamps(db, "a", "direct", [1, 2])
    sender_limits.put_stamps(db, "a", "direct", [2, 3])
    assert sender_limits.stamps(db, "a", "direct") == [2, 3]
    assert (
        sender_limits.stamps(db, "a", "broadcast") == sender_limits.stamps(db, "b", "direct") == []
    )


def test_a_closed_breaker_leaves_no_row(db: Connection) -> None:
    opened = CircuitBreaker(0, 5, 10, 1, "hop_limit")
    sender_limits.put_breaker(db, "sender:a", opened)
    assert sender_limits.breaker(db, "sender:a") == opened
    sender_limits.put_breaker(db, "sender:a", CLOSED)
    assert sender_limits.breaker(db, "sender:a") == CLOSED
    assert db.execute("SELECT count(*) FROM breakers").fetchone() == (0,)


def test_the_audit_only_grows(db: Connection) -> None:
    """§12.8: append-only; actor, action, time and outcome."""
    at = "2026-02-21T09:30:00.000000+00:00"
    sender_limits.audit(db, at=at, actor="a", action="acp/send", outcome="refused", detail={"x": 1})
    (row,) = db.execute("SELECT at, actor, action, outcome, message_id, detail FROM acp_audit")
    assert row == (at, "a", "acp/send", "refused", None, '{"x":1}')
    texts = [query.sql.lower() for query in vars(SQL).values() if hasattr(query, "sql")]
    assert texts
    changing = ("update acp_audit", "delete from acp_audit", "replace into acp_audit")
    assert [text for text in texts if any(words in text for words in changing)] == []
