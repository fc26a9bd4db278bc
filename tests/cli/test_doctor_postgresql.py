"""What `cacp doctor` says of a PostgreSQL server, and of the replicas on it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.doctor_postgresql import (
    connections_check,
    durability_check,
    pooler_check,
    replicas_checks,
    standbys_check,
    time_check,
    timeouts_check,
    writes_check,
)
from server.domain.duty import Lease
from server.domain.location import DatabaseUrl
from server.store.opening import connect, prepare
from server.store.postgresql.examine import CONNECTIONS_PER_REPLICA, ServerFacts, Standby
from server.store.postgresql.replicas import Announced, Replica, beat
from tests.cli.doctoring import examined
from tests.support.postgresql import drop, empty_database, execute

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "idle_session_timeout": "0",
    "max_connections": "100",
    "superuser_reserved_connections": "3",
}
SOUND = ServerFacts(
    version="17.2",
    database_bytes=10_000_000,
    takes_writes=True,
    settings=SETTINGS,
    connections=10,
    connections_of_nodes=7,
    standbys=[],
    ahead=1_000,
    uncertainty=500,
    pooled=False,
)
NOW = 1_800_000_000_000_000


def with_settings(**other: str) -> ServerFacts:
    return SOUND._replace(settings=SETTINGS | other)


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    made = empty_database()
    yield made
    drop(made)


def test_a_sound_server_is_sound() -> None:
    for check in (
        writes_check(SOUND),
        durability_check(SETTINGS),
        timeouts_check(SETTINGS),
        connections_check(SOUND, 3),
        standbys_check(SOUND),
        time_check(SOUND),
        pooler_check(SOUND),
    ):
        assert (check.state, check.remedy) == ("ok", "")


@pytest.mark.parametrize(
    ("other", "state", "word"),
    [
        ({"fsync": "off"}, "broken", "power cut destroys"),
        ({"synchronous_commit": "off"}, "broken", "loses what was acknowledged"),
        ({"full_page_writes": "off"}, "warning", "may damage"),
        ({"synchronous_commit": "local", "synchronous_standby_names": "*"}, "warning", "failover"),
        ({"synchronous_commit": "local"}, "ok", "synced"),
        ({"synchronous_commit": "remote_apply"}, "ok", "remote_apply"),
    ],
)
def test_what_endangers_acknowledged_writes_is_told(
    other: dict[str, str], state: str, word: str
) -> None:
    check = durability_check(SETTINGS | other)
    assert check.state == state
    assert word in check.finding
    assert bool(check.remedy) == (state != "ok")


def test_other_warnings_of_a_server() -> None:
    assert writes_check(SOUND._replace(takes_writes=False)).state == "broken"
    assert timeouts_check(SETTINGS | {"idle_session_timeout": "5000"}).state == "warning"
    assert "lock_timeout 5 s" in timeouts_check(SETTINGS | {"lock_timeout": "5000"}).finding
    most = 97 // CONNECTIONS_PER_REPLICA
    assert connections_check(SOUND, most - 2).state == "ok"
    assert connections_check(SOUND, most).state == "warning"
    assert "ahead of" in time_check(SOUND._replace(ahead=3_000_000)).finding
    assert time_check(SOUND._replace(ahead=-3_000_000)).state == "warning"
    assert time_check(SOUND._replace(ahead=3_000_000, uncertainty=2_500_000)).state == "ok"
    assert "pooler" in pooler_check(SOUND._replace(pooled=True)).finding


@pytest.mark.parametrize(
    ("names", "standbys", "state", "word"),
    [
        ("", [Standby("b", "async", 5)], "ok", "b (async) follow"),
        ("b", [Standby("b", "sync", None)], "ok", "b (sync) follow"),
        ("b", [], "broken", "none is connected"),
        ("b", [Standby("c", "async", 0)], "broken", "only c (async)"),
        ("", [Standby("b", "async", 10**9)], "warning", "b by 1,000 MB"),
    ],
)
def test_standbys(names: str, standbys: list[Standby], state: str, word: str) -> None:
    facts = with_settings(synchronous_standby_names=names)._replace(standbys=standbys)
    check = standbys_check(facts)
    assert check.state == state
    assert word in check.finding


def replica(name: str, **other: Any) -> Replica:
    return Replica(name, f"{name}:8080", "1.0", "baseline", NOW, NOW, "ok")._replace(**other)


@pytest.mark.parametrize(
    ("replicas", "lease", "states"),
    [
        ([], None, {"replicas": "ok"}),
        ([replica("a")], Lease("a", 1, NOW + 1), {"replicas": "ok", "duty": "ok"}),
        ([replica("a")], Lease("a", 1, NOW - 1), {"replicas": "ok", "duty": "warning"}),
        ([replica("a")], Lease("z", 1, NOW + 1), {"replicas": "ok", "duty": "warning"}),
        ([replica("a")], None, {"replicas": "ok", "duty": "warning"}),
        (
            [replica("a"), replica("b", version="1.1")],
            Lease("b", 1, NOW + 1),
            {"replicas": "warning", "duty": "ok"},
        ),
        (
            [replica("a"), replica("b", seen_at=NOW - 30_000_000)],
            Lease("a", 1, NOW + 1),
            {"replicas": "warning", "duty": "ok"},
        ),
    ],
)
def test_replicas(replicas: list[Replica], lease: Lease | None, states: dict[str, str]) -> None:
    checks = {check.name: check.state for check in replicas_checks(replicas, lease, NOW)}
    assert checks == states


def test_the_whole_doctor_on_a_server(tmp_path: Path, url: DatabaseUrl) -> None:
    files = tmp_path / "node.db"
    _, checks = examined(files, database_url=url)
    assert checks["schema"]["found"] == "the database is empty; a start makes the tables"
    assert "content" not in checks
    prepare(url)
    with closing(connect(url)) as db:
        beat(db, Announced("r", "10.0.0.1:8080", "1.0", "baseline", "ok"))
    _, checks = examined(files, database_url=url)
    assert checks["replicas"]["found"] == "1 run: 10.0.0.1:8080 (1.0)"
    assert checks["content"]["state"] == checks["files"]["state"] == "ok"
    assert checks["search"]["state"] == "ok"
    assert "disk" not in checks
    execute(url, "INSERT INTO migrations VALUES ('later', 'x', 'later')")
    status, checks = examined(files, database_url=url)
    assert (status, checks["schema"]["state"]) == (1, "broken")


def test_a_server_that_is_away_is_broken(tmp_path: Path) -> None:
    status, checks = examined(
        tmp_path / "node.db", database_url="postgresql://me:secret@127.0.0.1:1/cacp"
    )
    assert (status, checks["database"]["state"]) == (1, "broken")
    assert "secret" not in str(checks)
