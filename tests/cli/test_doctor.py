"""`cacp doctor` finds each kind of trouble, says how to mend it, and changes nothing."""

import hashlib
import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.doctor import clock_check
from server.store.migrate import prepare
from tests.cli.run import cacp
from tests.node import Node, free_port
from tests.team import AGENT, REPO


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "node.db"
    prepare(path)
    path.chmod(0o600)
    return path


def examined(db: Path, **variables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status, and each check by its name."""
    given = {"db": str(db), "port": str(free_port()), **variables}
    done = cacp("doctor", "--json", **given)
    body = json.loads(done.stdout)
    assert body["healthy"] == (done.exit_code == 0)
    for check in body["checks"]:
        assert bool(check["mend"]) == (check["state"] != "ok")
    return done.exit_code, {check["name"]: check for check in body["checks"]}


def execute(db: Path, *statements: str) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_sound_node_that_is_down(db: Path) -> None:
    before = hashlib.sha256(db.read_bytes()).digest()
    status, found = examined(db)
    assert status == 0
    assert {check["state"] for check in found.values()} == {"ok"}
    assert "is free" in found["port"]["found"]
    assert hashlib.sha256(db.read_bytes()).digest() == before


def test_a_node_that_runs(node: Node) -> None:
    who = {"agent_id": AGENT, "repo": REPO}
    _, found = examined(node.db, port=str(node.port), **who)
    assert found["port"]["found"].startswith("the node answers")
    status, found = examined(node.db, port=str(node.port))
    assert (status, found["port"]["state"]) == (1, "broken")
    assert AGENT in found["port"]["found"]


def test_before_the_first_start(tmp_path: Path) -> None:
    status, found = examined(tmp_path / "deep" / "none.db")
    assert status == 0
    assert "the first start makes it" in found["database"]["found"]
    assert list(tmp_path.iterdir()) == []


def test_wrong_settings(db: Path) -> None:
    status, found = examined(db, durability="MAYBE")
    assert (status, list(found)) == (1, ["settings"])
    assert "CACP_DURABILITY" in found["settings"]["found"]


def test_a_misspelt_variable(db: Path) -> None:
    status, found = examined(db, prot="9000")
    assert (status, found["variables"]["state"]) == (0, "warning")
    assert "CACP_PROT" in found["variables"]["found"]
    assert found["variables"]["mend"] == "did you mean CACP_PORT?"


def test_without_db_it_looks_where_serve_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CACP_DB", raising=False)
    done = cacp("doctor", "--json", port=str(free_port()))
    found = {check["name"]: check["found"] for check in json.loads(done.stdout)["checks"]}
    assert found["database"].startswith("data/cacp.db is not there yet")


def test_a_port_that_another_program_has(db: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, found = examined(db, port=str(other.getsockname()[1]))
    assert status == 1
    assert "another program has" in found["port"]["found"]


def test_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("x" * 5000)
    status, found = examined(tmp_path / "bad.db")
    assert (status, found["database"]["state"]) == (1, "broken")
    assert examined(tmp_path)[1]["database"]["found"] == f"{tmp_path} is no file"
    other = tmp_path / "other.db"
    execute(other, "CREATE TABLE t (a)")
    assert examined(other)[1]["schema"]["found"] == "this is no node's database"


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


@pytest.mark.parametrize(("version", "state", "status"), [("0", "broken", 1), ("999", "broken", 1)])
def test_the_schema_of_another_release(db: Path, version: str, state: str, status: int) -> None:
    execute(db, f"UPDATE meta SET value = '{version}' WHERE name = 'schema_version'")
    ended, found = examined(db)
    assert (ended, found["schema"]["state"]) == (status, state)


def test_open_permissions_and_a_clock_that_is_behind_are_warnings(db: Path) -> None:
    db.chmod(0o644)
    execute(
        db, "INSERT INTO changes VALUES (1, 4000000000000000, 'o', 'a', 'x', 'e', 'i', NULL, 'y')"
    )
    status, found = examined(db)
    assert status == 0
    assert found["permissions"]["state"] == "warning"
    assert found["permissions"]["mend"] == f"chmod 0600 {db}"
    assert found["stamps"]["state"] == "warning"


def test_peers(db: Path, node: Node) -> None:
    insert = "INSERT INTO peers VALUES ('{0}', '{1}', NULL, 'verified', 1, 1, NULL, NULL, 0, 0)"
    execute(
        db,
        insert.format("near", node.url),
        insert.format("gone", f"http://127.0.0.1:{free_port()}"),
        insert.format("evil", "http://169.254.169.254/"),
        insert.format("odd", f"{node.url}/live"),
    )
    status, found = examined(db)
    assert status == 1
    states = {name: found[f"peer {name}"]["state"] for name in ("near", "gone", "evil", "odd")}
    assert states == {"near": "ok", "gone": "warning", "evil": "broken", "odd": "warning"}


def test_people_see_what_is_wrong_and_how_to_mend_it(db: Path) -> None:
    db.chmod(0o666)
    shown = cacp("doctor", db=str(db), port=str(free_port())).stdout
    assert "✓ integrity    the file is sound" in shown
    assert "! permissions" in shown
    assert f"→ chmod 0600 {db}" in shown


@pytest.mark.parametrize(
    ("now", "state"), [(0, "broken"), (1_800_000_000, "ok"), (5_000_000_000, "broken")]
)
def test_the_clock(now: float, state: str) -> None:
    assert clock_check(now).state == state
