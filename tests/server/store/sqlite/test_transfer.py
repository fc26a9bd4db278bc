"""A node's file that is read to be moved, and one that is made (`tests/server/store/test_move.py`
moves whole nodes)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from server.store.sqlite.connection import connect
from server.store.sqlite.file_lock import is_locked
from server.store.sqlite.transfer import source, target


def test_rows_come_in_the_order_in_which_they_were_written(path: Path) -> None:
    with closing(connect(path)) as db:
        for name in ("z", "a", "m"):
            db.execute("INSERT INTO send_rates VALUES (?, 'k', '')", (name,))
    with source(path) as former:
        assert list(former.rows("send_rates", ("sender",))) == [("z",), ("a",), ("m",)]
        assert former.count("send_rates") == 3


def test_nobody_writes_meanwhile(path: Path) -> None:
    with source(path), closing(connect(path, busy_ms=1)) as other:
        assert is_locked(path)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
    assert not is_locked(path)


def test_an_older_releases_file_is_refused(path: Path) -> None:
    with closing(connect(path)) as db:
        db.execute("DROP TABLE thread_runs")
        db.execute("DELETE FROM migrations WHERE name = 'thread_runs'")
    with (
        pytest.raises(
            ValueError, match=r"of an older release \(thread_runs to run\): `cacp migrate`"
        ),
        source(path),
    ):
        pass


def test_a_file_has_its_name_only_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "node.db"
    with target(path, "there") as new:
        new.fill("send_rates", ("sender", "kind", "stamps"), [("s", "k", "")])
        assert not path.exists()
        new.filled({"changes": 4, "team_log": 7}, 0)
        new.finish()
    assert [file.name for file in path.parent.iterdir()] == ["node.db"]
    with closing(connect(path)) as db:
        assert db.execute("SELECT sender FROM send_rates").fetchall() == [("s",)]
        assert db.execute("SELECT name, seq FROM sqlite_sequence").fetchall() == [("team_log", 7)]
        assert db.execute("SELECT 1 FROM meta WHERE name = 'moving'").fetchall() == []


def test_nothing_is_left_of_one_that_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    with pytest.raises(KeyboardInterrupt), target(path, "there"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_references_to_nothing_are_damage(tmp_path: Path) -> None:
    with target(tmp_path / "node.db", "there") as new:
        row = ("p", "alias", "r")
        new.fill("repo_aliases", ("project_id", "alias", "repo_id"), [row])
        new.filled({}, 0)
        assert new.damage() == "rows of repo_aliases refer to nothing"
