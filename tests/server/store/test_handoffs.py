"""What the file holds of handoffs (acp-canonical §7.2, §9)."""

import sqlite3
from typing import Any

import psycopg
import pytest

from server.store import handoffs
from server.store.connection import Connection
from tests.support.in_process_node import ANA, BEN, package


def insert(db: Connection, one: str, task: str = "t", status: str = "proposed") -> None:
    whole: dict[str, Any] = package(task) | {
        "handoff_id": one,
        "thread_id": one,
        "provenance": {"origin_session": "s", "handoff_chain": [ANA]},
        "verification": {"schema_version": "1.0.0", "package_hash": "0" * 64},
    }
    handoffs.insert(
        db,
        whole,
        sender=ANA,
        receiver=BEN,
        reason="r",
        status=status,
        draft_digest="d",
        team=None,
        previous=None,
        team_gate=False,
        stamp=1_000,
    )


def intents(db: Connection, *methods: str) -> None:
    for method in methods:
        handoffs.add_intent(
            db, "h1", method=method, item="i", agent_id=ANA, session_key=None, status="pending"
        )


def test_a_handoff_is_read_as_it_was_written(db: Connection) -> None:
    insert(db, "h1")
    found = handoffs.find(db, "h1")
    assert found is not None
    assert (found.chain, found.package_hash, found.workq) == ((ANA,), "0" * 64, "none")
    assert found.initiated_at == "1970-01-01T00:00:00.001000+00:00"
    assert handoffs.find(db, "h2") is None


def test_the_index_lets_one_handoff_of_a_task_be_active(db: Connection) -> None:
    """§9: idx_handoffs_task_active."""
    insert(db, "h1")
    insert(db, "h2", status="draft")
    insert(db, "h3", task="other")
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        insert(db, "h4")
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        handoffs.put_status(db, "h2", "proposed")
    handoffs.put_status(db, "h1", "rejected", resolved=2_000, notes="no")
    handoffs.put_status(db, "h2", "proposed")
    active = handoffs.active(db, "t")
    assert active is not None
    assert active.handoff_id == "h2"


def test_what_is_due(db: Connection) -> None:
    for number in (1, 2, 3):
        insert(db, f"h{number}", task=f"t{number}")
        handoffs.put_due(db, f"h{number}", number * 10)
    handoffs.put_escalated(db, "h1", 11)
    assert handoffs.due(db, 25) == ["h2"]
    handoffs.put_due(db, "h2", None)
    assert handoffs.due(db, 25) == []


def test_calls_of_a_handoff_are_made_in_order(db: Connection) -> None:
    insert(db, "h1")
    intents(db, "workq.release", "workq.claim")
    (first,) = handoffs.open_intents(db, 0)
    assert first.method == "workq.release"
    handoffs.intent_failed(db, first, 50, "down")
    assert handoffs.open_intents(db, 49) == []
    (again,) = handoffs.open_intents(db, 50)
    assert again.attempts == 1
    assert handoffs.intent_done(db, again) is False
    (second,) = handoffs.open_intents(db, 50)
    assert second.method == "workq.claim"
    assert handoffs.intent_done(db, second) is True
    assert handoffs.open_intents(db, 50) == []


def test_giving_up_one_call_gives_up_all(db: Connection) -> None:
    insert(db, "h1")
    intents(db, "workq.release", "workq.claim")
    (first,) = handoffs.open_intents(db, 0)
    handoffs.give_up_intents(db, first, "refused")
    assert handoffs.open_intents(db, 0) == []
    assert handoffs.manual_count(db) == 1


def test_what_is_to_be_checked(db: Connection) -> None:
    insert(db, "h1", status="validating")
    insert(db, "h2", task="other")
    assert handoffs.to_check(db) == ["h1"]
    handoffs.put_artifacts(db, "h1", [])
    assert handoffs.to_check(db) == []


def test_the_first_node_that_offers_a_handoff_is_believed(db: Connection) -> None:
    handoffs.put_elsewhere(db, "h1", BEN, "t", "n1")
    handoffs.put_elsewhere(db, "h1", BEN, "t", "n2")
    handoffs.put_elsewhere(db, "h2", BEN, None, "n2")
    assert [handoffs.elsewhere(db, one, BEN) for one in ("h1", "h2", "h3")] == ["n1", "n2", None]
    assert handoffs.elsewhere(db, "h1", ANA) is None
    assert handoffs.task_elsewhere(db, "t", BEN) == [handoffs.Elsewhere("h1", "t", "n1")]
    assert handoffs.task_elsewhere(db, "t", ANA) == []


def test_a_handoff_elsewhere_has_ended_when_its_node_says_so(db: Connection) -> None:
    handoffs.put_elsewhere(db, "h1", BEN, "t", "n1")
    assert not handoffs.end_elsewhere(db, "h1", "n2")
    assert handoffs.end_elsewhere(db, "h1", "n1")
    assert not handoffs.end_elsewhere(db, "h1", "n1")
    assert handoffs.task_elsewhere(db, "t", BEN) == []
    assert handoffs.elsewhere(db, "h1", BEN) == "n1", "it can be asked for still"
