"""What `cacp doctor` and the page say of a node's database."""

import pytest

from peers.clock import GAP, Sure
from server.store import alarms, keys, peers, stamps
from server.store.alarms import Alarm
from server.store.checks import stamps_check, store_checks
from server.store.connection import Connection

NOW = 1_800_000_000_000_000
BETA = "aid://example.com/beta@1.0.0"


def checks(db: Connection) -> dict[str, str]:
    """What is not in order, by the names of the checks."""
    made = list(store_checks(db, NOW, NOW))
    assert all(bool(check.remedy) == (check.state != "ok") for check in made)
    return {check.name: f"{check.finding} → {check.remedy}" for check in made if check.remedy}


def test_an_empty_database_is_in_order(db: Connection) -> None:
    assert checks(db) == {}


def test_who_has_most_deferred_is_named(db: Connection) -> None:
    db.executemany(
        "INSERT INTO set_aside (digest, due, source, method, params, reason)"
        " VALUES (?, 0, ?, 'm', '{}', 'project')",
        [(str(number), source) for number, source in enumerate(("alpha", "beta", "beta"))],
    )
    [deferred] = checks(db).values()
    assert deferred.startswith("3 messages from peers, 2 of them from beta")
    assert "`cacp peers deferred`" in deferred


def test_a_clock_that_is_far_from_where_the_node_left_it(db: Connection) -> None:
    stamps.keep(db, Sure(NOW - 2 * GAP))
    certainty = checks(db)["certainty"]
    assert "6 d ahead of the last time that this node had confirmed" in certainty
    assert "cacp clock confirm" in certainty


def test_a_stamp_ahead_of_the_time(db: Connection) -> None:
    check = stamps_check(NOW * 2, NOW)
    assert (check.state, "in the future" in check.finding) == ("warning", True)


def test_what_peers_have_not_taken_is_told_with_its_reason(db: Connection) -> None:
    db.executemany(
        "INSERT INTO undelivered (peer, entity, project_id, entity_id, seq, tries, reason)"
        " VALUES (?, 'contract', 'p', ?, 1, 5, 'refuses: too large')",
        [(BETA, "c1"), (BETA, "c2")],
    )
    undelivered = checks(db)["undelivered"]
    assert undelivered.startswith(f"2 not accepted; the first by {BETA}: contract c1: refuses: too")


@pytest.mark.parametrize("reason", ["content_differs", "content_corrupt"])
def test_peers_that_stay_different(db: Connection, reason: alarms.Reason) -> None:
    alarms.begin(db, Alarm(reason, "beta", "d", NOW))
    assert ("differences" in checks(db)) == (reason == "content_differs")


def test_an_agent_that_has_a_key_and_is_registered_without_it(db: Connection) -> None:
    peers.put(db, BETA, "http://x", "beta", "unkeyed", NOW)
    assert checks(db) == {}
    keys.add(db, keys.new_key(), agent_id=BETA, repo="beta", now=NOW)
    [agent] = checks(db).values()
    assert "also registered without one, at http://x" in agent
