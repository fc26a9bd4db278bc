"""The PostgreSQL server of the tests."""

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import psycopg
import pytest

from server.store.opening import prepare
from tests.cli.run import ROOT
from tests.support import postgresql
from tests.support.waiting import eventually

pytestmark = pytest.mark.postgresql


def test_databases_have_the_tables_and_nothing_of_each_other() -> None:
    with postgresql.database() as one, postgresql.database() as other:
        postgresql.execute(one, "INSERT INTO acp_meta VALUES ('a', 'b')")
        assert postgresql.execute(one, "SELECT key FROM acp_meta WHERE key = %s", "a") == [("a",)]
        assert postgresql.execute(other, "SELECT key FROM acp_meta WHERE key = %s", "a") == []


def test_nodes_of_different_databases_are_different_nodes() -> None:
    with postgresql.database() as one, postgresql.database() as other:
        assert prepare(one).epoch != prepare(other).epoch
        kept = "SELECT value FROM meta WHERE name = 'secret'"
        assert postgresql.execute(one, kept) != postgresql.execute(other, kept)


def test_a_database_is_dropped_while_somebody_uses_it() -> None:
    url = postgresql.empty_database()
    with psycopg.connect(url) as used:
        postgresql.drop(url)
        with pytest.raises(psycopg.OperationalError):
            used.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


WORKER = """
import sys
from tests.support import postgresql
print(postgresql.server(), flush=True)
sys.stdin.read()
"""


def worker(run: str) -> "subprocess.Popen[str]":
    kept = {name: value for name, value in os.environ.items() if name != postgresql.NAMED}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER],
        env={**kept, postgresql.RUN: run},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def test_workers_share_one_server_which_ends_with_the_last_of_them() -> None:
    run = uuid.uuid4().hex
    folder = Path(tempfile.gettempdir(), f"cacp-postgresql-{run}")
    with worker(run) as first, worker(run) as second:
        try:
            assert first.stdout is not None
            assert second.stdout is not None
            url = first.stdout.readline().strip()
            assert second.stdout.readline().strip() == url
            first.send_signal(signal.SIGKILL)
            first.wait()
            assert answers(url), "it was started by one of the two, and the other lives"
            with worker(run) as late:
                assert late.stdout is not None
                assert late.stdout.readline().strip() == url
                second.send_signal(signal.SIGKILL)
                second.wait()
                assert answers(url)
                late.kill()
            eventually(lambda: not folder.exists())
            assert not answers(url)
        finally:
            first.kill()
            second.kill()


def test_a_server_of_its_own_is_gone_afterwards() -> None:
    with postgresql.own_server(fsync="off") as own:
        assert postgresql.execute(own.url(), "SHOW fsync") == [("off",)]
        folder = own.folder
    assert not folder.exists()
