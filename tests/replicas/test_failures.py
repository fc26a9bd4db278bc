"""What a replica says while its database is of no use, and that it goes on by itself afterwards:
each call gets a typed refusal, `/health` the reason, `/live` an answer, and nothing is lost.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cli.local_postgresql import LocalPostgresql
from server.domain.location import DatabaseUrl
from server.store.opening import prepare
from tests.replicas.cluster import Replica, running
from tests.replicas.patches import SHORT_LIMITS, STOP
from tests.replicas.run import Plan, run
from tests.support.node import RpcError
from tests.support.postgresql import database, execute, own_server
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPostgresql]:
    """A server that is restarted, stopped and reconfigured."""
    with own_server() as own:
        prepare(own.create_database("node"))
        execute(own.url("node"), "CREATE ROLE app LOGIN IN ROLE pg_monitor")
        execute(own.url("node"), "GRANT ALL ON ALL TABLES IN SCHEMA public TO app")
        yield own


@pytest.fixture
def url(server: LocalPostgresql) -> DatabaseUrl:
    """The database, as a user who is no superuser."""
    return DatabaseUrl(server.url("node").replace("//cacp@", "//app@"))


def write(replica: Replica, name: str = "p") -> str:
    """Create a project. Raises RpcError."""
    made = replica.call("cacp/project/create", name=name, objective="o", repos=[REPO])
    return str(made["projectId"])


REPO = {"name": "api", "role": "shared", "language": "python"}


def refusal(replica: Replica, name: str = "p") -> str | None:
    """The reason why a write is refused; None when it isn't."""
    try:
        write(replica, name)
    except RpcError as error:
        return error.reason
    return None


def health(replica: Replica) -> tuple[str, str | None]:
    told = replica.get("/health").json()
    return told["status"], told.get("reason")


@contextmanager
def goes_on(replica: Replica) -> Iterator[None]:
    """What was written before is there afterwards, and the same process writes again."""
    assert replica.process is not None
    before, project = replica.process.pid, write(replica)
    yield
    eventually(lambda: refusal(replica) is None)
    assert replica.call("cacp/project/get", projectId=project)["project_id"] == project
    eventually(lambda: health(replica)[0] == "healthy")
    assert replica.process.poll() is None
    assert replica.process.pid == before


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "immediate"])
def test_the_database_is_restarted(
    tmp_path: Path, server: LocalPostgresql, url: DatabaseUrl, fast: bool
) -> None:
    with running(tmp_path, url, 1) as cluster:
        [replica] = cluster.replicas
        with goes_on(replica):
            server.stop(fast=fast)
            assert refusal(replica) == "storage_away"
            with pytest.raises(RpcError) as error:
                replica.call("cacp/project/list")
            assert error.value.reason == "storage_away"
            eventually(lambda: health(replica) == ("unhealthy", "storage_away"))
            assert replica.get("/live").status_code == 200
            server.start()


def test_no_connection_is_left(tmp_path: Path, server: LocalPostgresql, url: DatabaseUrl) -> None:
    with running(tmp_path, url, 1) as cluster:
        [replica] = cluster.replicas
        with goes_on(replica):
            execute(server.url("node"), "ALTER ROLE app CONNECTION LIMIT 0")
            cut(server)
            eventually(lambda: refusal(replica) == "storage_crowded")
            eventually(lambda: health(replica) == ("unhealthy", "storage_crowded"))
            execute(server.url("node"), "ALTER ROLE app CONNECTION LIMIT -1")


def test_the_database_is_read_only(
    tmp_path: Path, server: LocalPostgresql, url: DatabaseUrl
) -> None:
    """Reads go on."""
    with running(tmp_path, url, 1) as cluster:
        [replica] = cluster.replicas
        project = write(replica)
        with goes_on(replica):
            read_only = "ALTER DATABASE node SET default_transaction_read_only"
            execute(server.url("node"), f"{read_only} = on")
            cut(server)
            eventually(lambda: refusal(replica) == "storage_read_only")
            assert replica.call("cacp/project/get", projectId=project)["project_id"] == project
            eventually(lambda: health(replica) == ("unhealthy", "storage_read_only"))
            execute(server.url("postgres"), f"{read_only} = off")


def cut(server: LocalPostgresql) -> None:
    """End all connections of replicas."""
    execute(
        server.url("postgres"),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'",
    )


def test_another_one_has_the_lock_for_too_long(
    tmp_path: Path, server: LocalPostgresql, url: DatabaseUrl
) -> None:
    with running(tmp_path, url, 1, patch=SHORT_LIMITS) as cluster:
        [replica] = cluster.replicas
        with goes_on(replica), psycopg.connect(server.url("node")) as other:
            other.execute("SELECT stamp FROM cluster WHERE id = 1 FOR UPDATE")
            assert refusal(replica) == "storage_locked"
            assert replica.call("cacp/project/list")["projects"]
            eventually(lambda: health(replica) == ("unhealthy", "storage_locked"))
            other.rollback()


def test_the_database_does_not_answer(
    tmp_path: Path, server: LocalPostgresql, url: DatabaseUrl
) -> None:
    """Its processes are stopped: connections stay open, and nothing comes. Callers wait for as long
    as a statement may take; `/live` does not."""
    with running(tmp_path, url, 1, patch=SHORT_LIMITS) as cluster:
        [replica] = cluster.replicas
        with goes_on(replica), ThreadPoolExecutor(1) as aside, stopped(server):
            called = aside.submit(refusal, replica)
            assert replica.get("/live").status_code == 200
            assert called.result() in ("storage_slow", "storage_away")
            status, reason = health(replica)
            assert status == "unhealthy"
            assert reason in ("storage_slow", "storage_away")


@contextmanager
def stopped(server: LocalPostgresql) -> Iterator[None]:
    """The server and all of its processes get no time from their machine."""
    pids = [int(pid) for [pid] in execute(server.url(), "SELECT pid FROM pg_stat_activity")]
    assert server.pid is not None
    everyone = [server.pid, *pids]
    for pid in everyone:
        signalled(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in everyone:
            signalled(pid, signal.SIGCONT)


def signalled(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        # The connection of whoever asked for the numbers.
        return


def test_a_replica_that_is_paused_while_it_has_the_lock(tmp_path: Path) -> None:
    """The database server ends its transaction: the others wait for that and write, its own caller
    is refused when it wakes, and what it was about to write is not there."""
    with database() as url, running(tmp_path, url, 2, patch=SHORT_LIMITS) as cluster:
        paused, other = cluster.replicas
        before = write(paused)
        paused.clock_file.with_name(STOP).touch()
        with ThreadPoolExecutor(1) as aside:
            called = aside.submit(refusal, paused, STOP)
            eventually(lambda: is_stopped(paused))
            eventually(lambda: refusal(other) is None)
            paused.wake()
            assert str(called.result()).startswith("storage_")
        listed = other.call("cacp/project/list")["projects"]
        assert {one["name"] for one in listed} == {"p"}
        assert before in {one["project_id"] for one in listed}
        eventually(lambda: refusal(paused) is None)


def is_stopped(replica: Replica) -> bool:
    assert replica.process is not None
    stat = Path(f"/proc/{replica.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


# --- failover -------------------------------------------------------------------------------------


@contextmanager
def pair() -> Iterator[tuple[LocalPostgresql, LocalPostgresql, DatabaseUrl]]:
    """A primary with a synchronous standby, and the URL of both."""
    with own_server(wal_level="replica") as primary:
        standby = primary.standby(primary.folder / "standby", "standby").start()
        try:
            primary.configure(synchronous_standby_names="standby")
            eventually(
                lambda: (
                    execute(primary.url(), "SELECT sync_state FROM pg_stat_replication")
                    == [("sync",)]
                )
            )
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            both = f"postgresql://cacp@{hosts}/postgres?target_session_attrs=read-write"
            yield primary, standby, DatabaseUrl(both)
        finally:
            standby.stop(fast=False)


@pytest.mark.parametrize("seed", [5])
def test_a_standby_takes_over(tmp_path: Path, seed: int) -> None:
    """Under load, without a restart of any replica; what was acknowledged is on the standby."""
    with pair() as (primary, standby, url), running(tmp_path, url) as cluster:
        processes = [pid_of(replica) for replica in cluster.replicas]

        def fail_over() -> None:
            primary.kill()
            standby.promote()

        judgement = run(seed, cluster, Plan(4.0, event=fail_over))
        assert judgement.holds, str(judgement)
        assert [pid_of(replica) for replica in cluster.replicas] == processes
        assert all(write(replica) for replica in cluster.replicas)


def pid_of(replica: Replica) -> int:
    assert replica.process is not None
    return replica.process.pid
