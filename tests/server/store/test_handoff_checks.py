"""The checks of handoffs' evidence that a database holds."""

from typing import Any

from server.store import handoff_checks
from server.store.connection import Connection
from tests.support.in_process_node import ANA, BEN

HELD: list[dict[str, Any]] = [{"exit_code": 0}]
FAILED: list[dict[str, Any]] = [{"exit_code": 1, "detail": "é"}]


def put(db: Connection, by: str, commands: list[dict[str, Any]], stamp: int, hash: str) -> None:
    handoff_checks.put(db, "h1", hash, checked_by=by, commands=commands, stamp=stamp)


def test_the_last_check_of_a_package_counts(db: Connection) -> None:
    assert handoff_checks.last(db, "h1", "p1") is None
    put(db, BEN, HELD, 5, "p1")
    assert handoff_checks.last(db, "h1", "p1") == (BEN, 5, HELD)
    assert handoff_checks.last(db, "h1", "p2") is None
    assert handoff_checks.last(db, "h2", "p1") is None
    put(db, ANA, FAILED, 6, "p1")
    assert handoff_checks.last(db, "h1", "p1") == (ANA, 6, FAILED)
    put(db, ANA, HELD, 7, "p1")
    assert handoff_checks.last(db, "h1", "p1") == (ANA, 7, HELD)


def test_each_agent_has_one_check_of_a_handoff(db: Connection) -> None:
    """So that nobody fills the database by checking."""
    put(db, BEN, HELD, 5, "p1")
    put(db, BEN, HELD, 6, "p2")
    assert handoff_checks.last(db, "h1", "p1") is None
    assert db.execute("SELECT count(*) FROM handoff_checks").fetchone()[0] == 1
