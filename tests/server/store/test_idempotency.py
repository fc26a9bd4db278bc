"""Answers that retried calls get (design §3)."""

from server.store import idempotency
from server.store.connection import Connection
from server.store.idempotency import KEPT, KeptAnswer


def test_an_answer_is_kept_for_24_hours(db: Connection) -> None:
    idempotency.keep(db, "scope", KeptAnswer("hash", '{"a":1}', 1_000), 1_000)
    assert idempotency.find(db, "scope", 1_000 + KEPT - 1) == KeptAnswer("hash", '{"a":1}', 1_000)
    assert idempotency.find(db, "scope", 1_000 + KEPT) is None
    assert idempotency.find(db, "other", 1_000) is None
    assert KEPT == 24 * 3600 * 1_000_000


def test_older_answers_are_forgotten_when_one_is_kept(db: Connection) -> None:
    idempotency.keep(db, "old", KeptAnswer("hash", "1", 1_000), 1_000)
    idempotency.keep(db, "new", KeptAnswer("hash", "2", 1_001 + KEPT), 1_001 + KEPT)
    assert db.execute("SELECT scope FROM idempotency").fetchall() == [("new",)]


def test_a_key_may_be_used_anew_once_its_answer_is_too_old(db: Connection) -> None:
    idempotency.keep(db, "scope", KeptAnswer("hash", "1", 1_000), 1_000)
    idempotency.keep(db, "scope", KeptAnswer("another", "2", 1_000 + KEPT), 1_000 + KEPT)
    assert idempotency.find(db, "scope", 1_000 + KEPT) == KeptAnswer("another", "2", 1_000 + KEPT)


def test_what_is_not_surely_too_old_is_kept_and_answered_with(db: Connection) -> None:
    """The clock is a year ahead; what is sure is a moment after the first call."""
    first = KeptAnswer("hash", "1", 1_000)
    idempotency.keep(db, "first", first, 1_000)
    idempotency.keep(db, "second", KeptAnswer("hash", "2", 365 * KEPT), 2_000)
    assert idempotency.find(db, "first", 3_000) == first
