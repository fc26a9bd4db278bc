"""`cacp doctor` finds each kind of trouble, says how to mend it, and changes nothing."""

import hashlib
import json
import os
import shutil
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.doctor import clock_check, clocks_check
from peers.clock import GAP, Reading, Sure
from server.store import changes, stamps
from server.store.database import connect
from server.store.migrate import prepare
from server.store.peers import Peer
from server.store.place import claim
from tests.cli.run import cacp
from tests.node import Node, free_port
from tests.team import AGENT, REPO

PEERS = (
    "INSERT INTO peers"
    " (agent_id, endpoint, repo_name, trust, registered_at, last_seen, secret, key_id) VALUES "
)


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
    assert "another program" in examined(other)[1]["schema"]["found"]


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


def test_open_permissions_and_a_clock_that_is_behind_are_warnings(db: Path) -> None:
    db.chmod(0o644)
    execute(
        db,
        "INSERT INTO projects (project_id, name, objective, status, agreement_policy, created_at,"
        " stamp) VALUES ('p', 'n', 'o', 'planning', 'any', 1, 4000000000000000)",
    )
    status, found = examined(db)
    assert status == 0
    assert found["permissions"]["state"] == "warning"
    assert found["permissions"]["mend"] == f"chmod 0600 {db}"
    assert found["stamps"]["state"] == "warning"


def test_peers(db: Path, node: Node) -> None:
    insert = PEERS + "('{0}', '{1}', NULL, 'verified', 1, 1, NULL, NULL)"
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


def test_an_agent_that_has_a_key_and_is_registered_without_it(db: Path, node: Node) -> None:
    """Of a database from before: today a key that is made ends such a registration."""
    insert = PEERS + "('{0}', '{1}', NULL, 'unkeyed', 1, 1, NULL, NULL)"
    execute(
        db,
        insert.format("both", node.url),
        insert.format("away", node.url),
        insert.format("foreign", node.url),
        PEERS + "('beta', 'http://127.0.0.1:1', NULL, 'verified', 1, 1, 's', 'k')",
        "INSERT INTO homes VALUES ('away', 'beta')",
        "INSERT INTO keys (key_id, hash, agent_id, repo, trust, created_at)"
        " VALUES ('k1', 'h', 'both', 'r', 'verified', 1)",
    )
    _, found = examined(db)
    assert [name for name in found if name.startswith("agent ")] == ["agent away", "agent both"]
    assert found["agent both"]["state"] == "warning"
    assert node.url in found["agent both"]["found"]
    assert "cacp peers remove both" in found["agent both"]["mend"]
    assert cacp("peers", "remove", "both", db=str(db)).exit_code == 0
    _, found = examined(db)
    assert "agent both" not in found


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


def told(*ahead: int | None) -> dict[Peer, Reading | None]:
    """What peers' clocks show beside this machine's; None for one that gave no answer."""
    names = [f"k{n}" for n in range(len(ahead))]
    known = [Peer(name, "http://x", name, "verified", 1, 1, "secret", "key") for name in names]
    readings = [None if one is None else Reading(0, one * 1_000_000, 0) for one in ahead]
    return dict(zip(known, readings, strict=True))


@pytest.mark.parametrize(
    ("ahead", "state", "found", "mend"),
    [
        ((0, 1), "ok", "3 of 3 nodes share the time", ""),
        ((0, 3_600), "ok", "2 of 3 nodes share the time", ""),
        ((None, None), "ok", "no peer told its time", ""),
        ((-3_600, -3_600), "warning", "1 h ahead of the time that 2 of 3", "run NTP"),
        (
            (3_600, -3_600),
            "warning",
            "k0 is 1 h ahead of it, k1 is 1 h behind it",
            "Run NTP on each",
        ),
        ((3_600,), "warning", "nobody's is believed", "Run NTP on each"),
    ],
)
def test_the_clocks_of_the_peers(
    ahead: tuple[int | None, ...], state: str, found: str, mend: str
) -> None:
    check = clocks_check(told(*ahead))
    assert check.state == state
    assert found in check.found
    assert mend in check.mend


def test_a_node_of_this_database_on_another_port(db: Path) -> None:
    held = claim(db)
    assert held is not None
    status, found = examined(db)
    os.close(held)
    assert (status, found["port"]["state"]) == (0, "warning")
    assert "on another port" in found["port"]["found"]


def test_who_has_most_deferred_is_named(db: Path) -> None:
    execute(
        db,
        *(
            "INSERT INTO set_aside (digest, due, source, method, params, reason)"
            f" VALUES ('{number}', 0, '{source}', 'm', '{{}}', 'project')"
            for number, source in enumerate(("alpha", "beta", "beta"))
        ),
    )
    _, found = examined(db)
    assert found["deferred"]["found"].startswith("3 messages from peers, 2 of them from beta")
    assert "`cacp peers deferred`" in found["deferred"]["mend"]


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


def test_a_clock_that_is_far_from_where_the_node_left_it(db: Path) -> None:
    with closing(sqlite3.connect(db)) as connection:
        stamps.keep(connection, Sure(time.time_ns() // 1000 - 2 * GAP))
        connection.commit()
    status, examined_ = examined(db)
    found = examined_["certainty"]
    assert status == 0
    assert found["state"] == "warning"
    assert "6 d ahead of the last time that this node was sure of" in found["found"]
    assert "cacp clock confirm" in found["mend"]


def test_what_peers_have_not_taken_is_told_with_its_reason(db: Path) -> None:
    execute(
        db,
        "INSERT INTO undelivered (peer, entity, project_id, entity_id, seq, tries, reason) VALUES"
        " ('aid://example.com/beta@1.0.0', 'contract', 'p', 'c1', 1, 5, 'refuses: too large'),"
        " ('aid://example.com/beta@1.0.0', 'contract', 'p', 'c2', 2, 1, 'refuses: too large')",
    )
    status, found = examined(db)
    assert (status, found["undelivered"]["state"]) == (0, "warning")
    assert found["undelivered"]["found"] == (
        "2 not taken; the first by aid://example.com/beta@1.0.0: contract c1: refuses: too large"
    )
