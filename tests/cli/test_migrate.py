"""`cacp migrate`: what a start would do, and doing it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.terminal import REFUSED
from server.store.opening import prepare
from server.store.sqlite.file_lock import lock
from tests.cli.run import cacp
from tests.support.postgresql import drop, empty_database, execute

pytestmark = pytest.mark.sqlite


def test_a_file_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DROP TABLE thread_runs")
        db.execute("DELETE FROM migrations WHERE name = 'thread_runs'")
    done = cacp("migrate", "--check", "--db", str(path))
    assert (done.exit_code, done.stderr) == (REFUSED, f"{path} would run: thread_runs.\n")
    done = cacp("migrate", "--db", str(path))
    assert (done.exit_code, done.stderr) == (0, f"{path} has run: thread_runs.\n")
    assert cacp("migrate", "--check", "--db", str(path)).exit_code == 0
    assert (tmp_path / "node.db.before-0038_thread_runs").exists()


def test_a_file_in_use_or_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    assert cacp("migrate", "--db", str(path)).exit_code == REFUSED
    prepare(path)
    descriptor = lock(path)
    done = cacp("migrate", "--db", str(path))
    assert (done.exit_code, descriptor is not None) == (REFUSED, True)
    assert "Another node runs on this database" in done.stderr
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
    done = cacp("migrate", "--check", "--db", str(tmp_path / "other.db"))
    assert (done.exit_code, "belongs to another program" in done.stderr) == (REFUSED, True)


def test_a_database_is_made_and_checked() -> None:
    url = empty_database()
    try:
        done = cacp("migrate", "--check", "--json", database_url=url)
        assert done.exit_code == REFUSED
        assert json.loads(done.stdout) == {
            "database": url.shown,
            "pending": ["baseline", "verification_policy", "runner_keys", "handoff_checks"],
            "done": False,
        }
        assert execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
        assert cacp("migrate", "--database", url).exit_code == 0
        assert cacp("migrate", "--check", "--database", url).exit_code == 0
        before = prepare(url).epoch
        assert cacp("migrate", "--new-epoch", "--database", url).exit_code == 0
        assert prepare(url).epoch != before
        execute(
            url, "UPDATE migrations SET name = 'later', needs = 'later' WHERE name = 'runner_keys'"
        )
        done = cacp("migrate", "--check", "--database", url)
        assert (done.exit_code, "A newer release wrote" in done.stderr) == (REFUSED, True)
    finally:
        drop(url)


def test_a_server_that_is_away_is_one_line() -> None:
    done = cacp("migrate", "--check", "--db", "postgresql://me:secret@127.0.0.1:1/cacp")
    assert done.exit_code == REFUSED
    [line] = done.stderr.splitlines()
    assert line.startswith("cacp: postgresql://me@127.0.0.1:1/cacp can't be used")
    assert "secret" not in line


def test_a_file_restored_from_disks_gets_a_new_epoch(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    before = prepare(path).epoch
    assert cacp("migrate", "--new-epoch", "--db", str(path)).exit_code == 0
    assert prepare(path).epoch != before
