"""Connections to a node's file, and the driver's errors as refusals (design §3)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from server.store.sqlite.connection import connect, copy_to, roll_back, snapshot, unavailable


def test_a_connection_is_as_design_4_says(path: Path) -> None:
    with closing(connect(path)) as db:
        pragmas = ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
        settings = [db.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas]
    assert settings == ["wal", 1, 5000, 2]


def test_an_error_of_the_driver_has_a_reason(path: Path, tmp_path: Path) -> None:
    with closing(connect(path)) as db, pytest.raises(sqlite3.Error) as wrong:
        db.execute("SELECT nonsense")
    assert unavailable(wrong.value).data["reason"] == "storage_failed"
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 100)
    with pytest.raises(sqlite3.Error) as corrupt:
        connect(broken)
    assert unavailable(corrupt.value).data["reason"] == "storage_corrupt"


def test_a_copy_is_marked_as_one(db: sqlite3.Connection, tmp_path: Path) -> None:
    copy_to(tmp_path / "copy.db", db)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT value FROM meta WHERE name = 'copied'").fetchone() == ("1",)
        assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_snapshot_ends_with_its_read(db: sqlite3.Connection) -> None:
    sizes: list[int] = []
    row = snapshot(lambda on: on.execute("SELECT 'text'").fetchone(), sizes.append, db)
    assert row == ("text",)
    assert sizes == [4]
    assert not db.in_transaction
    roll_back(db)
