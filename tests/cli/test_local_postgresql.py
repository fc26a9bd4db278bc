"""A server that this process starts: real programs, real ends."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from cli.local_postgresql import LocalPostgresql
from cli.postgresql_binaries import packaged
from tests.cli.run import ROOT
from tests.support.postgresql import execute, own_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.postgresql


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's account can enter: pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o711)
        yield Path(made)


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def test_it_keeps_its_data_and_port_however_it_ends(folder: Path) -> None:
    with LocalPostgresql(folder, settings={"max_connections": 37}) as server:
        url = server.create_database("kept")
        assert server.create_database("kept") == url
        assert execute(url, "SHOW max_connections") == [("37",)]
        assert execute(url, "SHOW server_encoding") == [("UTF8",)]
        execute(url, "CREATE TABLE t (a int)")
        execute(url, "INSERT INTO t VALUES (1)")
        server.kill()
        assert not server.running
        assert not answers(url)
        server.start()
        execute(url, "INSERT INTO t VALUES (2)")
        first = server.pid
        server.restart()
        assert server.pid != first
        server.stop(fast=False)
    with LocalPostgresql(folder, port=server.port):
        assert execute(url, "SELECT a FROM t ORDER BY a") == [(1,), (2,)]
    assert not answers(url)


def test_the_package_alone_will_do(folder: Path) -> None:
    with LocalPostgresql(folder, binaries=packaged()[0], settings={"fsync": "off"}) as server:
        [[version]] = execute(server.url(), "SHOW server_version_num")
        assert int(version) // 10_000 == 18


def test_with_a_password_it_lets_nobody_in_without(folder: Path) -> None:
    with LocalPostgresql(folder, password="not'so@easy/") as server:
        assert execute(server.url(), "SELECT 1") == [(1,)]
        bare = f"postgresql://cacp@127.0.0.1:{server.port}/postgres"
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(bare)
        assert "easy" not in repr(server.url())


def test_a_standby_has_every_confirmed_write_and_takes_over() -> None:
    with own_server() as primary:
        execute(primary.url(), "CREATE TABLE t (a int)")
        standby = primary.standby(primary.folder / "standby", "second")
        try:
            standby.start()
            primary.configure(synchronous_standby_names="second")
            state = "SELECT sync_state FROM pg_stat_replication"
            eventually(lambda: execute(primary.url(), state) == [("sync",)])
            execute(primary.url(), "INSERT INTO t VALUES (1)")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                execute(standby.url(), "INSERT INTO t VALUES (2)")
            primary.kill()
            standby.promote()
            execute(standby.url(), "INSERT INTO t VALUES (2)")
            assert execute(standby.url(), "SELECT a FROM t ORDER BY a") == [(1,), (2,)]
        finally:
            standby.remove()


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    with LocalPostgresql(folder) as first:
        other = folder / "other"
        second = LocalPostgresql(other, port=first.port)
        with pytest.raises(ValueError, match="could not bind IPv4 address"):
            second.start()
        assert not second.running
        second.stop()


@pytest.mark.needs("root")
def test_a_folder_that_its_account_cannot_enter_is_refused(folder: Path) -> None:
    folder.chmod(0o700)
    with pytest.raises(ValueError, match="name another folder"):
        LocalPostgresql(folder).start()


STARTER = """
import sys, time
from pathlib import Path
from cli.local_postgresql import LocalPostgresql

server = LocalPostgresql(Path(sys.argv[1])).start()
print(server.url(), flush=True)
sys.stdin.read()
"""


def test_it_ends_with_who_started_it_however_that_ends(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        url = starter.stdout.readline().strip()
        assert answers(url)
        with closing(psycopg.connect(url)):
            os.kill(starter.pid, signal.SIGKILL)
            starter.wait()
            eventually(lambda: not (folder / "data" / "postmaster.pid").exists())
    assert not answers(url)
