"""Storage that fails: clear answers, reads where they can, recovery without a restart (design §3).

The faults are real: full disks, limits of the kernel, locks of other processes, broken pages.
"""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import ledger
from tests.acceptance.disk import file_size_limit, full, health, small_disk
from tests.support.node import Node, RpcError
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team
from tests.support.waiting import eventually

pytestmark = pytest.mark.sqlite

BULK = {"text": "x" * 5_000}


def team_on(node: Node) -> tuple[Team, str]:
    """A project of two, and a contract in it."""
    team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
    return team, team.proposed()


def check_refused(team: Team, reasons: set[str]) -> str:
    """A write is refused as our own fault, with an id to look up; the reason."""
    with pytest.raises(RpcError) as refused:
        team.proposed(content=BULK)
    error = refused.value
    assert error.code == -32000
    assert error.data.keys() == {"reason", "id"}
    assert error.data["id"] in error.message
    assert error.reason in reasons
    for secret in ("Traceback", "sqlite", str(team.node.folder)):
        assert secret not in str(error)
    return error.reason


def check_degraded(team: Team, contract: str, reason: str) -> None:
    """Unhealthy with that reason, alive, and reads go on. A checkpoint may have made room for a few
    more writes: then `/health` says otherwise, and is right."""
    while health(team.node) != (503, reason):
        acked, _ = until_refused(team, {reason})
        assert acked
    assert team.node.get("/ready").status_code == 503
    assert team.node.get("/live").status_code == 200
    assert team.contract(contract)["status"] == "proposed"
    assert team.backend("project/get")["contracts"]


def check_recovered(team: Team) -> None:
    """Writes are taken again, by the same process."""
    assert team.agreed(content=BULK)
    assert team.node.get("/health").status_code == 200
    assert team.node.get("/ready").status_code == 200


def end(node: Node) -> None:
    """Stop the node; what it leaves behind is whole."""
    node.stop()
    assert '"stopped"' in node.log.splitlines()[-1]
    assert "Traceback" not in node.log
    ledger.check(node.db)


def until_refused(team: Team, reasons: set[str]) -> tuple[list[str], str]:
    """Propose until a write is refused: what was acknowledged, and the reason."""
    acked: list[str] = []
    while len(acked) < 5_000:
        try:
            acked.append(team.proposed(content=BULK))
        except RpcError:
            return acked, check_refused(team, reasons)
    raise AssertionError("the disk never filled up")


# --- a full disk --------------------------------------------------------------------------------


def test_a_full_disk(tmp_path: Path) -> None:
    """The node's log is on the full disk too."""
    with small_disk(tmp_path / "disk") as disk, Node(tmp_path / "disk") as node:
        team, contract = team_on(node)
        reasons = {"storage_full"} if disk else {"storage_failed"}
        with full(node, disk=disk):
            acked, reason = until_refused(team, reasons)
            with ThreadPoolExecutor(8) as clients:
                wait = [clients.submit(until_refused, team, reasons) for _ in range(8)]
                for one in wait:
                    acked += one.result(60)[0]
            check_degraded(team, contract, reason)
        check_recovered(team)
        kept = {one["contract_id"] for one in team.backend("project/get")["contracts"]}
        assert kept.issuperset(acked)
        end(node)
        node.start()


def test_a_disk_that_takes_nothing_any_more(tmp_path: Path) -> None:
    """As a file system that the kernel has turned read-only under open files: every write fails,
    also the log's."""
    with Node(tmp_path) as node:
        team, contract = team_on(node)
        with file_size_limit(node, 0):
            for _ in range(3):
                with pytest.raises(RpcError) as refused:
                    team.proposed()
                assert (refused.value.code, refused.value.reason) == (-32000, "storage_failed")
            check_degraded(team, contract, "storage_failed")
        check_recovered(team)
        end(node)


def test_a_restart_that_finds_the_disk_full_still_serves_reads(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, Node(tmp_path / "disk") as node:
        team, contract = team_on(node)
        node.kill()
        node.start()
        with full(node, disk=disk):
            _, reason = until_refused(team, {"storage_full", "storage_failed"})
            if disk:
                node.kill()
                node.start()
                _, reason = until_refused(team, {"storage_full"})
            check_degraded(team, contract, reason)
        check_recovered(team)
        end(node)


# --- a database that can't be written -----------------------------------------------------------


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """No file of the folder may be written, and none made in it."""
    files = list(folder.iterdir())
    for path in files:
        path.chmod(0o444)
    folder.chmod(0o555)
    yield
    folder.chmod(0o755)
    for path in files:
        path.chmod(0o644)


def check_refuses_to_start(node: Node, mend: str) -> None:
    """One readable line with what mends it, and exit status 1."""
    node.log_file.write_text("")
    node.start(wait=False, override=False)
    assert node.process is not None
    process, node.process = node.process, None
    assert process.wait(30) == 1
    (line,) = node.log.splitlines()
    assert line.startswith("cacp: ")
    assert mend in line


def test_a_read_only_database_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with Node(folder) as node:
        node.log_file = tmp_path / "node.log"
        team, contract = team_on(node)
        node.stop()
        with read_only(folder):
            check_refuses_to_start(node, "writ")
        node.start()
        assert team.contract(contract)["status"] == "proposed"
        check_recovered(team)


# --- a database that another process holds ------------------------------------------------------

_HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(node: Node) -> Iterator[None]:
    """Another process is in a write transaction."""
    command = [sys.executable, "-c", _HOLD, str(node.db)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()
        assert holder.wait(10) == 0


def test_a_database_that_another_process_locks(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        team, contract = team_on(node)
        with locked(node):
            with ThreadPoolExecutor(1) as clients:
                waiting = clients.submit(check_refused, team, {"storage_locked"})
                assert team.contract(contract)["status"] == "proposed"
                assert not waiting.done(), "reads don't wait for the lock, writes do"
                assert waiting.result(60) == "storage_locked"
            check_degraded(team, contract, "storage_locked")
        check_recovered(team)
        end(node)


# --- a file that is broken ----------------------------------------------------------------------


def break_pages(path: Path, first: int) -> None:
    """Overwrite every page from `first` on."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = db.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek(first * size)
        file.write(b"\xa5" * (path.stat().st_size - file.tell()))


def outcome(team: Team, method: str, **params: Any) -> tuple[int, str | None] | None:
    """The code and reason with which a call is refused; None when it isn't."""
    try:
        team.backend(method, **params)
    except RpcError as error:
        return error.code, error.reason
    return None


def test_a_file_that_breaks_while_it_is_used(tmp_path: Path) -> None:
    """Some calls go on from memory; once a broken page is met, the node says so until its end."""
    with Node(tmp_path) as node:
        team, contract = team_on(node)
        for _ in range(20):
            team.proposed(content=BULK)
        node.restart()
        break_pages(node.db, 1)
        corrupt = (-32000, "storage_corrupt")
        assert outcome(team, "project/get") == corrupt
        assert health(node) == (503, "storage_corrupt")
        for _ in range(5):
            assert outcome(team, "contract/get", contractId=contract) in {None, corrupt}
            assert outcome(team, "context/share", type="decision", content={}) in {None, corrupt}
            assert health(node) == (503, "storage_corrupt")
        assert node.get("/live").status_code == 200
        assert "Traceback" not in node.log
        node.stop()
        check_refuses_to_start(node, "restore it from a backup")


@pytest.mark.parametrize(
    "content",
    [b"no database at all" * 1_000, b"SQLite format 3\x00" + b"\xff" * 8_000],
)
def test_a_file_that_is_no_database_at_the_start(tmp_path: Path, content: bytes) -> None:
    node = Node(tmp_path)
    node.db.write_bytes(content)
    check_refuses_to_start(node, "restore it from a backup")
    assert node.db.read_bytes() == content, "left as it was found"
    node.http.close()


def test_the_database_of_another_program(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with closing(sqlite3.connect(node.db)) as db:
        db.execute("CREATE TABLE songs (title)")
    check_refuses_to_start(node, "another program")
    node.http.close()


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.db.mkdir()
    check_refuses_to_start(node, "check that its folder exists and is writable")
    node.http.close()


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    node = Node(tmp_path, db=tmp_path / "data" / "node.db")
    check_refuses_to_start(node, "check that its folder exists and is writable")
    node.http.close()


def test_a_file_that_is_moved_away_and_put_back(tmp_path: Path) -> None:
    """What is written to it meanwhile, no start would find again: it is refused."""
    with Node(tmp_path) as node:
        team, contract = team_on(node)
        node.db.rename(tmp_path / "elsewhere.db")
        check_refused(team, {"storage_missing"})
        check_degraded(team, contract, "storage_missing")
        (tmp_path / "elsewhere.db").rename(node.db)
        check_recovered(team)
        assert node.log.count('"event": "storage_missing"') == 1
        end(node)


@pytest.mark.parametrize("name", ["node.db", "node.db-wal", "node.db-shm"])
def test_a_file_that_is_deleted(name: str, tmp_path: Path) -> None:
    """The node refuses, and leaves what it holds beside the place when it stops."""
    with Node(tmp_path) as node:
        team, contract = team_on(node)
        (tmp_path / name).unlink()
        assert health(node) == (503, "storage_missing")
        check_refused(team, {"storage_missing"})
        check_degraded(team, contract, "storage_missing")
        node.stop()
        (rescued,) = tmp_path.glob("node.db.rescued-*")
        assert "Traceback" not in node.log
        assert stat.S_IMODE(rescued.stat().st_mode) == 0o600
        for old in tmp_path.glob("node.db*"):
            if old not in (rescued, tmp_path / "node.db.lock"):
                old.unlink()
        rescued.rename(node.db)
        node.start()
        assert team.contract(contract)["status"] == "proposed"
        check_recovered(team)
        end(node)


def test_a_log_that_is_deleted_before_a_kill(tmp_path: Path) -> None:
    """What it held is in the database by the time that the node says so."""
    with Node(tmp_path) as node:
        team, contract = team_on(node)
        (tmp_path / "node.db-wal").unlink()
        assert health(node) == (503, "storage_missing")
        eventually(lambda: holds(node.db, contract))
        node.kill()
        (tmp_path / "node.db-shm").unlink()
        node.start()
        assert team.contract(contract)["status"] == "proposed"
        end(node)


def holds(db: Path, contract: str) -> bool:
    """Whether the file alone has a contract: nothing of its log is read."""
    with closing(sqlite3.connect(f"{db.as_uri()}?mode=ro&immutable=1", uri=True)) as alone:
        try:
            rows = alone.execute("SELECT 1 FROM contracts WHERE contract_id = ?", (contract,))
            return rows.fetchone() is not None
        except sqlite3.Error:
            return False
