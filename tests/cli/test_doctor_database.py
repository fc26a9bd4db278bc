"""What `cacp doctor` says of the database file."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from server.store import changes
from server.store.sqlite.connection import connect
from tests.cli.doctoring import examined, execute, new_database
from tests.cli.run import cacp
from tests.support.node import free_port

pytestmark = pytest.mark.sqlite


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


def test_a_damaged_page(db: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
    execute(
        db,
        f"INSERT INTO tokens {numbers} SELECT i, i, i, i, i, NULL FROM n",
        "PRAGMA journal_mode=DELETE",
    )
    content = bytearray(db.read_bytes())
    content[-3000:-1000] = b"\xff" * 2000
    db.write_bytes(content)
    status, found = examined(db)
    assert status == 1
    broken = found.get("integrity") or found["database"]
    assert broken["state"] == "broken"
    assert "backup" in broken["mend"]


def test_rows_that_refer_to_nothing(db: Path) -> None:
    execute(db, "INSERT INTO packets VALUES ('gone', 'p', 't', NULL, 1, '{}', NULL)")
    status, found = examined(db)
    assert status == 1
    assert found["integrity"]["found"] == "1 row of packets refers to nothing"


@pytest.mark.parametrize(
    ("change", "found", "mend"),
    [
        ("DELETE FROM meta WHERE name = 'schema_version'", "another program", "--db"),
        ("INSERT INTO migrations VALUES ('leases', '')", "doesn't know leases", "newer release"),
        ("DROP INDEX packets_by_time", "lacks index packets_by_time", "backup"),
    ],
)
def test_a_schema_that_a_node_refuses(db: Path, change: str, found: str, mend: str) -> None:
    execute(db, change)
    ended, checks = examined(db)
    assert (ended, checks["schema"]["state"]) == (1, "broken")
    assert found in checks["schema"]["found"]
    assert mend in checks["schema"]["mend"]


def test_a_schema_that_the_next_start_renews(db: Path) -> None:
    execute(db, "DELETE FROM migrations WHERE name = 'conflicts'")
    _, checks = examined(db)
    assert checks["schema"]["state"] == "warning"
    assert "runs conflicts" in checks["schema"]["found"]


def test_a_database_of_an_earlier_release_is_not_broken(db: Path) -> None:
    execute(db, "DELETE FROM migrations WHERE name = 'undelivered'", "DROP TABLE undelivered")
    status, checks = examined(db)
    assert (status, checks["schema"]["state"]) == (0, "warning")


def test_what_waits_and_what_is_stamped_ahead(db: Path) -> None:
    execute(
        db,
        "INSERT INTO set_aside (digest, due, source, method, params, reason)"
        " VALUES ('d', 4000000000000000, 's', 'm', '{}', 'stamp')",
        "INSERT INTO projects (project_id, name, objective, status, agreement_policy, created_at,"
        " stamp) VALUES ('p', 'n', 'o', 'planning', 'any', 1, 4000000000000000)",
    )
    status, found = examined(db)
    assert status == 0
    assert found["deferred"]["found"].startswith("1 message from peers, stamped too far ahead")
    assert "`cacp clock accept`" in found["deferred"]["mend"]
    assert "2096-10-02" in found["stamps"]["found"]


def test_a_log_that_can_not_be_read_to_its_end(db: Path) -> None:
    """Without a sync of each commit it is what a power cut may leave, and no refusal."""
    (live := db.with_name("live")).mkdir()
    shutil.copy(db, live)
    with closing(connect(live / db.name)) as writer:
        for number in range(9):
            changes.put_meta(writer, f"n{number}", "x" * 3_000)
        shutil.copytree(live, crashed := db.with_name("crashed"))
    (crashed / f"{db.name}-shm").unlink()
    with (crashed / f"{db.name}-wal").open("r+b") as log:
        log.seek(20_000)
        log.write(b"noise" * 20)
    given = {"db": str(crashed / db.name), "port": str(free_port())}
    states = {}
    for durability in ("FULL", "NORMAL"):
        done = cacp("doctor", "--json", durability=durability, **given)
        found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        states[durability] = found["log"]["state"]
        assert "cacp backup" in found["log"]["mend"]
    assert states == {"FULL": "broken", "NORMAL": "warning"}
