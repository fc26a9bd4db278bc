"""The layer below SQLite: what it keeps, what it refuses, and that it is gone afterwards."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults import shim
from tests.faults.account import Named, Synced, Wrote
from tests.faults.shim import Call, Fault


def make(folder: Path, name: str = "a.db") -> None:
    with closing(sqlite3.connect(folder / name, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE IF NOT EXISTS t (a)")
        db.execute("INSERT INTO t VALUES ('found')")


def test_what_sqlite_asks_of_the_disk_is_kept(tmp_path: Path) -> None:
    with shim.below(tmp_path) as account:
        make(tmp_path)
    names = [one.name for one in account.entries if isinstance(one, Named) and one.file]
    assert names == ["a.db", "a.db-journal", "a.db-wal"]
    written = b"".join(one.content for one in account.entries if isinstance(one, Wrote))
    assert b"found" in written
    assert any(one.folder for one in account.entries if isinstance(one, Synced))
    before = len(account.entries)
    make(tmp_path)
    assert len(account.entries) == before


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "watched").mkdir()
    with shim.below(tmp_path / "watched", lambda call: "EIO") as account:
        make(tmp_path)
    assert account.entries == []


@pytest.mark.parametrize(
    ("kind", "fault", "name"),
    [
        ("open", "EIO", "SQLITE_CANTOPEN"),
        ("read", "EIO", "SQLITE_IOERR_READ"),
        ("write", "EIO", "SQLITE_IOERR_WRITE"),
        ("write", "ENOSPC", "SQLITE_FULL"),
        ("write", "short", "SQLITE_FULL"),
        ("sync", "EIO", "SQLITE_IOERR_FSYNC"),
    ],
)
def test_a_call_is_refused_as_sqlite_knows_it(
    tmp_path: Path, kind: str, fault: Fault, name: str
) -> None:
    def refuse(call: Call) -> Fault | None:
        return fault if call.kind == kind else None

    with shim.below(tmp_path, refuse), pytest.raises(sqlite3.OperationalError) as refused:
        make(tmp_path)
    assert refused.value.sqlite_errorname == name


def test_where_sqlite_is_hidden_in_the_interpreter_it_is_found_in_memory() -> None:
    sqlite3.connect(":memory:").close()
    found = shim.found_in_memory()
    if sys.platform == "linux":
        assert found is not None
        assert shim.exported() in (None, found)
    else:
        assert shim.exported() is not None


def test_a_mistake_in_the_layer_itself_is_no_success(tmp_path: Path) -> None:
    def broken(call: Call) -> Fault | None:
        raise ZeroDivisionError

    with (
        pytest.raises(ZeroDivisionError),
        shim.below(tmp_path, broken),
        pytest.raises(sqlite3.OperationalError),
    ):
        make(tmp_path)
