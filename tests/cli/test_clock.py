"""`cacp clock` on a real file."""

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from peers.clock import GAP, Sure
from server.store import deferred, stamps
from tests.cli.run import cacp
from tests.support.located import connect
from tests.support.mesh import project
from tests.support.node import AGENT
from tests.support.skewed_clock import HOUR, SkewedNode
from tests.support.waiting import eventually


def test_what_is_deferred_is_listed_and_accepted(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", "--create", db=db)
    assert json.loads(cacp("clock", "deferred", "--json", db=db).stdout) == []
    assert cacp("clock", "deferred", db=db).stderr.startswith("Nothing is deferred")
    assert "Nothing is deferred" in cacp("clock", "accept", db=db).stderr
    due = time.time_ns() // 1000 + 3_600_000_000
    message = deferred.DeferredMessage(
        "aid://h/beta@1", "cacp/context/sync", '{"projectId": "p1"}', "x"
    )
    with closing(connect(db)) as connection:
        deferred.put(connection, message, "stamp", "", due=due, now=0)
    [one] = json.loads(cacp("clock", "deferred", "--json", db=db).stdout)
    assert (one["peer"], one["projectId"]) == ("aid://h/beta@1", "p1")
    assert "p1" in cacp("clock", "deferred", db=db).stdout
    assert "accepted 1 message, due until" in cacp("clock", "accept", db=db).stderr
    assert json.loads(cacp("clock", "deferred", "--json", db=db).stdout) == []
    with closing(connect(db)) as connection:
        assert [one.params for one in deferred.due(connection, 0)] == [message.params]
        assert deferred.accepted(connection) > due


def test_a_clock_in_doubt_is_confirmed(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", "--create", db=db)
    assert "is not in doubt" in cacp("clock", "confirm", db=db).stderr
    now = time.time_ns() // 1000
    with closing(connect(db)) as connection:
        stamps.keep(connection, Sure(now - 2 * GAP, doubted=7))
    assert "confirmed: it is 20" in cacp("clock", "confirm", db=db).stderr
    with closing(connect(db)) as connection:
        found = stamps.kept(connection)
    assert found is not None
    assert found.time >= now
    assert found.doubted == 0


@pytest.mark.sqlite
def test_what_a_wrong_clock_stamped_is_repaired(tmp_path: Path) -> None:
    """The node ran an hour ahead, alone; then its machine was set right."""
    with SkewedNode(tmp_path, ahead=HOUR) as node:
        project(node)
        node.stop()
        given = {"db": str(node.db), "agent_id": AGENT}
        told = json.loads(cacp("clock", "repair", "--json", **given).stdout)
        assert (told["repaired"], told["taken"]) == (False, {})
        assert told["untaken"]["project"] == 1
        assert "Would get new stamps: " in cacp("clock", "repair", **given).stdout
        assert "Given new stamps: " in cacp("clock", "repair", "--yes", **given).stdout
        assert "Nothing to repair" in cacp("clock", "repair", **given).stdout
        [(stamp,)] = node.query("SELECT stamp FROM projects")
        assert stamp <= time.time_ns() // 1000


@pytest.mark.sqlite
def test_a_running_node_is_well_once_it_is_repaired(tmp_path: Path) -> None:
    def reason() -> object:
        return node.get("/health").json().get("reason")

    with SkewedNode(tmp_path, ahead=HOUR) as node:
        project(node)
        node.set_clock(0)
        node.restart()
        eventually(lambda: reason() == "stamps_ahead")
        done = cacp("clock", "repair", "--yes", db=str(node.db), agent_id=AGENT)
        assert "A running node sees it in seconds." in done.stdout
        eventually(lambda: reason() is None)
