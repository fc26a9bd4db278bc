"""Does SQLite read all of the write-ahead log?"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.store import changes
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import check_log, prepare
from server.store.sqlite.schema import SchemaDamaged
from server.store.sqlite.wal import (
    FRAME_HEADER_BYTES,
    HEADER_BYTES,
    WalFrame,
    lost_commits,
    unreadable_commits,
)
from tests.faults import shim

ROWS = 20
PAGE = 4096
FRAME = FRAME_HEADER_BYTES + PAGE
NEW, OLD = b"n" * 8, b"o" * 8


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """The files that a process left that wrote a row in each of some commits, and was killed."""
    (tmp_path / "live").mkdir()
    path = tmp_path / "live" / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("CREATE TABLE t (a, b)")
        for number in range(ROWS):
            db.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 3_000))
        shutil.copytree(tmp_path / "live", tmp_path / "crashed")
    (tmp_path / "crashed" / "a.db-shm").unlink()
    return tmp_path / "crashed" / "a.db"


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A look at the database, which changes nothing of its files."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
        yield db


def rows(path: Path) -> int:
    with reading(path) as db:
        return int(db.execute("SELECT count(*) FROM t").fetchone()[0])


def log_of(path: Path) -> Path:
    return path.with_name("a.db-wal")


def overwrite(path: Path, at: int, content: bytes) -> None:
    with log_of(path).open("r+b") as log:
        log.seek(at)
        log.write(content)


def flip(path: Path, at: int) -> None:
    """Damage a byte, whatever it is."""
    overwrite(path, at, bytes([log_of(path).read_bytes()[at] ^ 0xFF]))


def lost(path: Path) -> int:
    with reading(path):
        return unreadable_commits(path)


def test_a_log_that_a_kill_leaves_is_whole(crashed: Path) -> None:
    assert rows(crashed) == ROWS
    assert lost(crashed) == 0
    check_log(crashed)


def test_damage_in_the_middle_hides_what_was_acknowledged_after_it(crashed: Path) -> None:
    frames = (log_of(crashed).stat().st_size - HEADER_BYTES) // FRAME
    overwrite(crashed, HEADER_BYTES + FRAME * (frames // 2) + 500, b"noise" * 20)
    found = rows(crashed)
    assert found < ROWS
    # Of the transaction that stands last, nobody can say whether it was acknowledged.
    assert lost(crashed) == ROWS - found - 1
    before = log_of(crashed).read_bytes()
    with pytest.raises(SchemaDamaged, match="commits in it can't be read"):
        check_log(crashed)
    with pytest.raises(SchemaDamaged):
        prepare(crashed)
    assert log_of(crashed).read_bytes() == before, "nothing of the evidence is gone"


@pytest.mark.parametrize("at", [0, 17, 30], ids=["magic", "salt", "checksum"])
def test_a_damaged_header_hides_the_whole_log(crashed: Path, at: int) -> None:
    flip(crashed, at)
    assert lost(crashed) >= ROWS


def test_without_a_sync_of_each_commit_it_is_only_warned_of(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A power cut leaves such a log too, and what was not synced was not promised."""
    with closing(connect(path)) as db:
        for number in range(ROWS):
            changes.put_meta(db, f"n{number}", "x" * 3_000)
        shutil.copytree(path.parent, path.parent / "crashed")
    crashed = path.parent / "crashed" / path.name
    crashed.with_name(f"{path.name}-shm").unlink()
    log = crashed.with_name(f"{path.name}-wal")
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // 2)
        file.write(b"noise" * 20)
    with pytest.raises(SchemaDamaged):
        prepare(crashed)
    prepare(crashed, "NORMAL")
    assert "log_unreadable" in capsys.readouterr().out
    with closing(connect(crashed)) as db:
        kept = [name for (name,) in db.execute("SELECT name FROM meta WHERE name LIKE 'n%'")]
    assert set(kept) == {f"n{number}" for number in range(len(kept))}
    assert 0 < len(kept) < ROWS


def test_a_torn_end_is_no_loss(crashed: Path) -> None:
    """The last transaction was not on disk whole, so nobody was told of it."""
    size = log_of(crashed).stat().st_size
    overwrite(crashed, size - 100, b"noise" * 20)
    assert rows(crashed) == ROWS - 1
    assert lost(crashed) == 0
    for bytes_less in (1, 100, FRAME, FRAME + 1):
        with log_of(crashed).open("r+b") as log:
            log.truncate(size - bytes_less)
        check_log(crashed)


def test_no_log_and_an_empty_one_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    prepare(path)
    check_log(path)
    log_of(path).touch()
    check_log(path)


def test_a_first_start_that_lost_power_is_no_damage(tmp_path: Path) -> None:
    """While a database becomes one with a log: the journal that undoes that stands beside a log in
    which nothing is yet, and only who may write can read it."""
    (tmp_path / "live").mkdir()
    path = tmp_path / "live" / "a.db"
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN IMMEDIATE")
        for number in range(ROWS):
            db.execute("INSERT INTO meta VALUES (?, ?)", (f"half {number}", "x" * 3_000))
        shutil.copytree(tmp_path / "live", tmp_path / "left")
    left = tmp_path / "left" / "a.db"
    assert left.with_name("a.db-journal").stat().st_size
    log_of(left).write_bytes(bytes(HEADER_BYTES))
    prepare(left)
    with reading(left) as db:
        assert db.execute("SELECT 1 FROM meta WHERE name LIKE 'half%'").fetchall() == []


@pytest.mark.parametrize("cut", range(HEADER_BYTES + 1))
@pytest.mark.parametrize("times", [0, 255], ids=["once", "a carry"])
def test_a_header_that_was_torn_while_the_log_began_anew_is_no_loss(
    begun_anew: Callable[[int], Path], times: int, cut: int
) -> None:
    """All that the log held was copied back, and synced, before its first frame is overwritten."""
    path = begun_anew(times)
    former, new = (log_of(path).with_suffix(one).read_bytes() for one in (".former", ".new"))
    log_of(path).write_bytes(new[:cut] + former[cut:])
    assert lost(path) == 0
    assert rows(path) == ROWS
    check_log(path)


@pytest.fixture
def begun_anew(tmp_path: Path) -> Callable[[int], Path]:
    """Makes a database whose log was used so often before, with its log before and after it began
    anew."""

    def make(times: int) -> Path:
        path = tmp_path / "live.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=OFF")
            db.execute("PRAGMA wal_autocheckpoint=0")
            db.execute("CREATE TABLE t (a, b)")
            for number in range(times):
                db.execute("CREATE TABLE IF NOT EXISTS other (a)")
                db.execute("INSERT INTO other VALUES (?)", (number,))
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            for number in range(ROWS):
                db.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 3_000))
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            made = tmp_path / "a.db"
            shutil.copy(path, made)
            shutil.copy(tmp_path / "live.db-wal", log_of(made).with_suffix(".former"))
            db.execute("CREATE TABLE more (a)")
            shutil.copy(tmp_path / "live.db-wal", log_of(made).with_suffix(".new"))
        return made

    return make


def test_commits_that_could_not_be_synced_are_no_loss(tmp_path: Path) -> None:
    """They were refused, and what came next was written over them, from the same place on."""
    failing = True
    path = tmp_path / "live" / "a.db"
    path.parent.mkdir()
    with (
        shim.below(path.parent, lambda call: "EIO" if failing and call.kind == "sync" else None),
        closing(sqlite3.connect(path, isolation_level=None)) as db,
    ):
        failing = False
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE t (a, b)")
        failing = True
        for pages in (9, 6, 3):
            with pytest.raises(sqlite3.OperationalError, match="disk I/O"):
                db.execute("INSERT INTO t VALUES (1, zeroblob(?))", (pages * PAGE,))
        failing = False
        db.execute("INSERT INTO t VALUES (2, 'taken')")
        shutil.copytree(path.parent, tmp_path / "crashed")
    crashed = tmp_path / "crashed" / "a.db"
    crashed.with_name("a.db-shm").unlink()
    assert rows(crashed) == 1
    check_log(crashed)


@pytest.mark.parametrize("in_frame", [0, 5, 9, 17, 23, 24, 3000])
def test_damage_anywhere_in_a_frame_is_seen(crashed: Path, in_frame: int) -> None:
    frames = (log_of(crashed).stat().st_size - HEADER_BYTES) // FRAME
    flip(crashed, HEADER_BYTES + FRAME * (frames // 2) + in_frame)
    assert rows(crashed) < ROWS
    # Of the two commits beside the damage, the frames may tell no more.
    assert lost(crashed) >= ROWS - rows(crashed) - 3


@given(st.lists(st.booleans()), st.lists(st.booleans()))
def test_a_commit_is_known_to_be_lost_by_what_was_written_upon_it(
    here: list[bool], before: list[bool]
) -> None:
    frames = [WalFrame(NEW, one) for one in here] + [WalFrame(OLD, one) for one in before]
    assert lost_commits(frames, NEW) == sum(here)
