"""GET /health tells the truth about the database (CACP 2.0, GET /health; design §6)."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from peers.clock import Reading
from server.http import health
from server.http.health import HealthCheck
from server.store import changes
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.sqlite.storage import LOW_DISK
from server.store.undelivered import STUCK_TRIES
from tests.support.located import connect, location_of, prepare
from tests.support.node import Node, RpcError
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare(tmp_path / "cacp.db")
    return tmp_path / "cacp.db"


async def test_a_node_that_reads_and_writes_is_healthy(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    assert await HealthCheck(database).examine() == health.Health("healthy")
    await database.close()


async def test_what_peers_do_not_take_is_told_once_it_is_no_passing_trouble(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    row = "INSERT INTO undelivered VALUES ('beta', 'contract', 'p', ?, 1, ?, 'why', 0)"
    await database.write(lambda to: to.connection.execute(row, ("c1", STUCK_TRIES - 1)) and None)
    assert await HealthCheck(database).examine() == health.Health("healthy")
    await database.write(lambda to: to.connection.execute(row, ("c2", STUCK_TRIES)) and None)
    found = await HealthCheck(database).examine()
    assert (found.status, found.reason) == ("degraded", "undelivered")
    assert found.detail is not None
    assert found.detail.startswith("1 entity was refused by 1 peer, or can't be sent")
    assert "`cacp peers drop` gives up" in found.detail
    await database.close()


async def test_a_probe_is_spared_while_writes_succeed(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    checkup = HealthCheck(database)
    await checkup.examine()
    before = database.writes
    for _ in range(5):
        await checkup.examine()
    assert database.writes == before
    await database.close()


@pytest.mark.sqlite
async def test_a_write_that_failed_makes_the_next_examination_probe(path: Path) -> None:
    def break_(transaction: Transaction) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    database = Database(location_of(path))
    await database.open(0)
    checkup = HealthCheck(database)
    await checkup.examine()
    with pytest.raises(Exception, match="database"):
        await database.write(break_)
    await database.write(lambda to: changes.put_meta(to.connection, "little", "x"))
    assert database.trouble == "storage_failed", "a small write proves little"
    assert (await checkup.examine()).status == "healthy"
    assert database.trouble is None
    await database.close()


@pytest.mark.sqlite
async def test_a_write_that_fails_while_a_probe_succeeds_is_not_forgotten(path: Path) -> None:
    def break_(transaction: Transaction) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    database = Database(location_of(path))
    await database.open(0)
    checkup = HealthCheck(database)
    failing = asyncio.create_task(database.write(break_))
    assert (await checkup.examine()).status == "healthy"
    assert database.trouble == "storage_failed", "the next examination probes again"
    with pytest.raises(Exception, match="database"):
        await failing
    assert (await checkup.examine()).status == "healthy"
    assert database.trouble is None
    await database.close()


async def test_a_writer_that_has_ended_is_unhealthy(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    checkup = HealthCheck(database)
    await checkup.examine()
    [writer] = [task for task in asyncio.all_tasks() if task.get_name() == "cacp-writer"]
    writer.cancel()
    await asyncio.wait([writer])
    assert await checkup.examine() == health.Health("unhealthy", "writer_ended")
    await database.close()


@pytest.mark.sqlite
async def test_each_probe_really_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite passes over a value that stays the same: such a probe would find nothing out."""
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.0)
    database = Database(location_of(path))
    await database.open(0)
    checkup = HealthCheck(database)
    with closing(connect(path)) as eye:
        seen = set()
        for _ in range(3):
            await checkup.examine()
            seen.add(eye.execute("PRAGMA data_version").fetchone())
    assert len(seen) == 3
    await database.close()


@pytest.mark.sqlite
async def test_a_file_that_was_taken_away_is_unhealthy(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    path.unlink()
    assert await HealthCheck(database).examine() == health.Health("unhealthy", "storage_missing")
    await database.close()


async def test_a_probe_that_takes_too_long_is_unhealthy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PROBE_PATIENCE", 0.05)
    go_on = threading.Event()
    database = Database(location_of(path))
    await database.open(0)

    def block(transaction: Transaction) -> None:
        go_on.wait(5)

    writing = asyncio.ensure_future(database.write(block))
    await asyncio.sleep(0)
    assert await HealthCheck(database).examine() == health.Health("unhealthy", "storage_slow")
    go_on.set()
    await writing
    await database.close()


async def test_a_database_that_does_not_answer_a_read_is_unhealthy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database server may leave it without an answer for long."""
    database = Database(location_of(path))
    await database.open(0)
    over = asyncio.Event()
    monkeypatch.setattr(health, "READ_PATIENCE", 0.01)
    monkeypatch.setattr(database, "read", lambda _: over.wait())
    found = await HealthCheck(database).examine()
    assert found == health.Health("unhealthy", "storage_slow")
    await database.close()


@pytest.mark.sqlite
async def test_little_room_on_the_disk_is_degraded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(free=LOW_DISK - 1)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    database = Database(location_of(path))
    await database.open(0)
    assert await HealthCheck(database).examine() == health.Health("degraded", "disk_low")
    await database.close()


async def test_a_clock_that_is_far_from_the_peers_is_degraded(path: Path) -> None:
    """Design §7: it says how far, by whose word, and what to do."""
    database = Database(location_of(path))
    await database.open(0)
    now, steady = database.clock.own(), database.clock.steady()
    for peer in ("a", "b"):
        database.clock.heard(peer, Reading(steady, now - 3_600_000_000, steady))
    found = await HealthCheck(database).examine()
    assert (found.status, found.reason) == ("degraded", "clock_off")
    assert found.detail is not None
    assert "1 h ahead of the time that 2 of 3 nodes share" in found.detail
    assert "NTP" in found.detail
    await database.close()


@pytest.mark.sqlite
def test_a_locked_database_is_unhealthy_and_recovers_without_a_restart(tmp_path: Path) -> None:
    """Issue: clear degraded answers (-32000 with an id, /health 503), recovery without restart."""
    with Node(tmp_path) as node:
        project = node.call("cacp/project/create", name="n", objective="o")["projectId"]
        with closing(connect(node.db)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(RpcError) as error:
                node.call("cacp/project/create", name="n", objective="o")
            assert (error.value.code, error.value.reason) == (-32000, "storage_locked")
            assert error.value.data["id"] in error.value.message
            assert error.value.data["id"] in node.log
            response = node.get("/health")
            assert response.status_code == 503
            assert response.json()["status"] == "unhealthy"
            assert response.json()["reason"] == "storage_locked"
            assert node.call("cacp/project/get", projectId=project), "reads go on"
            other.execute("ROLLBACK")
            eventually(lambda: node.get("/health").json()["status"] == "healthy")
        assert node.get("/ready").status_code == 200
        assert node.call("cacp/project/create", name="n", objective="o")


@pytest.mark.sqlite
def test_a_corrupt_database_is_unhealthy_but_the_node_lives(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        node.call("cacp/project/create", name="n", objective="o")
        node.stop()
        node.restart()
        with node.db.open("r+b") as file:
            file.write(b"\0" * node.db.stat().st_size)
        with pytest.raises(RpcError) as error:
            node.call("cacp/project/list")
        assert (error.value.code, error.value.reason) == (-32000, "storage_corrupt")
        # What a read had cached of the file is good still.
        eventually(lambda: node.get("/health").status_code == 503)
        assert node.get("/health").json()["reason"] == "storage_corrupt"
        assert node.get("/ready").json() == {"status": "unready", "reason": "storage_corrupt"}
        assert node.get("/live").status_code == 200


async def test_a_reader_sees_the_health_without_a_probe(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    checkup = HealthCheck(database)
    assert await database.read(checkup.seen) == health.WELL
    database.trouble = "storage_full"
    assert await database.read(checkup.seen) == health.Health("unhealthy", "storage_full")
    assert database.trouble == "storage_full", "only a probe ends it"
    await database.close()
