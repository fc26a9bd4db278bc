"""The change log (design §4)."""

import pytest

from server.domain.location import Location
from server.store import changes
from server.store.changes import Change
from server.store.connection import Connection
from server.store.opening import prepare


def append(
    db: Connection,
    at: int,
    project_id: str | None = "p",
    *,
    entity: str = "contract",
    origin: str = "node",
) -> None:
    changes.append(
        db,
        at=at,
        origin=origin,
        actor="agent",
        action="cacp/contract/propose",
        entity=entity,
        entity_id="c1",
        project_id=project_id,
        outcome="proposed",
    )


def test_changes_are_numbered_in_order(db: Connection) -> None:
    assert changes.newest(db) == 0
    append(db, 10)
    append(db, 11, project_id=None)
    assert changes.newest(db) == 2
    first, second = changes.after(db, 0, 10)
    assert first == Change(
        1, 10, "node", "agent", "cacp/contract/propose", "contract", "c1", "p", "proposed"
    )
    assert (second.seq, second.project_id) == (2, None)


def test_they_are_read_after_a_number_and_a_page_at_a_time(db: Connection) -> None:
    for at in range(5):
        append(db, at)
    assert [one.seq for one in changes.after(db, 2, 2)] == [3, 4]
    assert changes.after(db, 5, 2) == []


@pytest.mark.sqlite
def test_a_change_that_is_rolled_back_leaves_no_gap(db: Connection) -> None:
    append(db, 1)
    db.execute("BEGIN IMMEDIATE")
    append(db, 2)
    db.execute("ROLLBACK")
    append(db, 3)
    assert [(one.seq, one.at) for one in changes.after(db, 0, 10)] == [(1, 1), (2, 3)]


def test_the_epoch_is_the_databases(db: Connection, location: Location) -> None:
    assert changes.epoch(db) == prepare(location).epoch
    assert changes.can_read(db)


def test_conflicts_are_counted_by_who_sent_them(db: Connection) -> None:
    for entity, origin in (("conflict", "a"), ("conflict", "a"), ("contract", "a")):
        append(db, 1, entity=entity, origin=origin)
    assert changes.conflicts_by_origin(db) == {"a": 2}


@pytest.mark.sqlite
def test_counting_conflicts_does_not_read_every_change(db: Connection) -> None:
    [plan] = db.execute(
        "EXPLAIN QUERY PLAN SELECT origin, count(*) FROM changes"
        " WHERE entity = 'conflict' GROUP BY origin"
    )
    assert "changes_conflicts" in plan[3]
