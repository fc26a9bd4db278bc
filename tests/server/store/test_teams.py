"""What the file holds of teamspaces (acp-canonical §8.2)."""

import pytest

from server.domain.acp.handoff import Ownership
from server.store import teams
from server.store.connection import Connection
from tests.support.in_process_node import ANA, BEN


@pytest.fixture(autouse=True)
def core(db: Connection) -> None:
    teams.insert(db, "core", "Core", "", ANA, 1_000)
    teams.put_member(db, "core", ANA, "coordinator")


def test_members(db: Connection) -> None:
    teams.put_member(db, "core", BEN, "executor")
    teams.put_member(db, "core", BEN, "reviewer")
    assert teams.members(db, "core") == {ANA: "coordinator", BEN: "reviewer"}
    assert teams.of_agent(db, BEN) == [("core", "Core", "active", "reviewer")]
    teams.drop_member(db, "core", BEN)
    assert teams.members(db, "core") == {ANA: "coordinator"}


def test_closing(db: Connection) -> None:
    teams.close(db, "core", 2_000)
    found = teams.find(db, "core")
    assert found is not None
    assert (found.status, found.closed_at) == ("closed", 2_000)


def test_tasks(db: Connection) -> None:
    for name, team in (("t1", "core"), ("t2", None)):
        teams.insert_task(
            db,
            name,
            team=team,
            title="T",
            kind="execution",
            high_risk=True,
            created_by=ANA,
            stamp=1,
        )
    found = teams.task(db, "t1")
    assert found is not None
    assert (found.owned, found.assigned) == (None, None)
    teams.assign(db, "t1", ANA, 5)
    found = teams.task(db, "t1")
    assert found is not None
    assert (found.owned, found.assigned) == (Ownership((ANA,)), ANA)
    teams.put_owner(db, "t1", Ownership((ANA, BEN)))
    teams.put_task_status(db, "t1", "blocked", "security", "A leak")
    (found,) = teams.tasks(db, "core")
    assert found.owned == Ownership((ANA, BEN))
    assert (found.status, found.block_code, bool(found.high_risk)) == ("blocked", "security", True)
    teams.put_team(db, "t2", "core")
    assert [one.task_id for one in teams.tasks(db, "core")] == ["t1", "t2"]
    teams.drop_task(db, "t2")
    assert teams.task(db, "t2") is None


def test_logs(db: Connection) -> None:
    for name in ("roles", "handoffs", "roles"):
        teams.log(db, "core", name, {"b": 1, "a": name})
    lines = teams.log_after(db, "core", "roles", 0, 10)
    assert [line for _, line in lines] == ['{"a":"roles","b":1}'] * 2
    assert teams.log_after(db, "core", "roles", lines[0][0], 10) == lines[1:]
    assert {log: seq for _, log, seq in teams.log_heads(db)} == {
        "roles": lines[1][0],
        "handoffs": lines[0][0] + 1,
    }
    assert teams.log_newest(db) == lines[1][0]
