"""Reads and writes of a replica, on connections that end and that say nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial

import psycopg
import pytest

from server.domain.location import DatabaseUrl
from server.store import changes
from server.store.connection import Connection
from server.store.postgresql import storage
from server.store.postgresql.errors import ServerSilent
from server.store.postgresql.storage import READERS, PgStorage
from server.util.loops import Loops
from tests.support.postgresql import drop, empty_database, execute, fresh_database
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def opened() -> AsyncIterator[PgStorage]:
    url = fresh_database()
    made = PgStorage(url)
    await made.open(Loops(), lambda: None)
    yield made
    await made.close()
    drop(url)


async def test_what_waits_behind_a_read_without_an_answer_fails_with_it(
    opened: PgStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would have to wait for as long, after those before it; what is asked later is tried."""
    monkeypatch.setattr(storage, "SILENT_SECONDS", 0)
    begun, over, tried = threading.Semaphore(0), threading.Event(), threading.Event()

    def silent(_: Connection) -> None:
        begun.release()
        assert over.wait(60)
        raise ServerSilent("nothing came")

    reading = [asyncio.create_task(opened.read(silent)) for _ in range(READERS)]
    await asyncio.to_thread(lambda: [begun.acquire() for _ in range(READERS)])
    behind = asyncio.create_task(opened.read(lambda _: tried.set()))
    await asyncio.sleep(0)
    over.set()
    await asyncio.wait([*reading, behind])
    assert isinstance(behind.exception(), ServerSilent)
    assert not tried.is_set()
    assert all(isinstance(task.exception(), ServerSilent) for task in reading)
    await opened.read(lambda _: tried.set())
    assert tried.is_set()


async def test_reads_and_writes_go_on_after_their_connections_were_ended(opened: PgStorage) -> None:
    url = DatabaseUrl(opened.url)
    await opened.read(number)
    await asyncio.to_thread(end_all, url)
    assert await opened.read(number) == 1
    assert await opened.on_writer(opened.begin) == 0
    await opened.on_writer(opened.roll_back)


def number(db: Connection) -> int:
    return int(db.execute("SELECT id FROM cluster").fetchone()[0])


def end_all(url: DatabaseUrl) -> None:
    execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


async def test_a_session_that_became_read_only_is_not_kept(opened: PgStorage) -> None:
    """Another server may have taken over, or this one takes writes again from who connects anew."""
    await opened.on_writer(lambda db: db.execute("SET default_transaction_read_only = on"))
    assert await opened.on_writer(opened.begin) == 0
    await opened.on_writer(opened.roll_back)


async def test_a_replica_that_closes_leaves_no_connection(opened: PgStorage) -> None:
    other = PgStorage(f"{opened.url}?application_name=other")
    await other.open(Loops(), lambda: None)
    await other.read(number)
    # A listener that is cancelled while it connects is left to the collection of garbage.
    await until(lambda: "LISTEN cacp" in queries(opened.url, "other"))
    assert len(queries(opened.url, "other")) > 2
    await other.close()
    await until(lambda: not queries(opened.url, "other"))


def queries(url: str, name: str) -> list[str]:
    """The last statement of each connection to a database that gives this name."""
    rows = execute(
        url,
        "SELECT query FROM pg_stat_activity"
        " WHERE application_name = %s AND datname = current_database()",
        name,
    )
    return [query for (query,) in rows]


async def test_what_it_says_of_itself(opened: PgStorage) -> None:
    [[version]] = execute(opened.url, "SHOW server_version")
    facts = opened.facts()
    assert facts == {
        "kind": "postgresql",
        "server": version.split()[0],
        "replica": opened.replica,
        "pooled": False,
    }
    assert opened.replica != PgStorage(opened.url).replica


async def test_a_commit_is_noted_with_its_stamp_and_number(opened: PgStorage) -> None:
    for stamp in (5, 9):
        assert await opened.on_writer(partial(write, opened, stamp)) < stamp
    assert execute(opened.url, "SELECT stamp FROM cluster") == [(9,)]
    commits = execute(opened.url, "SELECT number FROM commits WHERE replica = %s", opened.replica)
    assert commits == [(2,)]
    assert await opened.on_writer(opened.begin) == 9
    await opened.on_writer(opened.roll_back)


def write(opened: PgStorage, stamp: int, db: Connection) -> int:
    """Write and commit, as a group does. Returns the last stamp of all replicas before it."""
    last = opened.begin(db)
    changes.put_meta(db, "name", f"{stamp}")
    opened.commit(db, stamp)
    return last


async def test_a_group_that_wrote_nothing_gives_out_no_stamp(opened: PgStorage) -> None:
    def read_only(db: Connection) -> None:
        opened.begin(db)
        db.execute("SELECT 1").fetchone()
        opened.commit(db, 77)

    await opened.on_writer(read_only)
    assert execute(opened.url, "SELECT stamp FROM cluster") == [(0,)]
    assert execute(opened.url, "SELECT * FROM commits WHERE replica = %s", opened.replica) == []


async def test_a_transaction_that_was_left_open_is_ended_by_the_next(opened: PgStorage) -> None:
    def leave_open(db: Connection) -> None:
        opened.begin(db)
        changes.put_meta(db, "half", "written")

    await opened.on_writer(leave_open)
    await opened.on_writer(partial(write, opened, 1))
    assert execute(opened.url, "SELECT name FROM meta WHERE name IN ('half', 'name')") == [
        ("name",)
    ]


async def test_a_refused_commit_is_no_lost_one(opened: PgStorage) -> None:
    """Its transaction has failed; the connection goes on."""

    def insert_twice(db: Connection) -> None:
        opened.begin(db)
        for _ in range(2):
            db.execute("INSERT INTO meta (name, value) VALUES ('twice', '')")
        opened.commit(db, 3)

    with pytest.raises(psycopg.errors.UniqueViolation):
        await opened.on_writer(insert_twice)
    assert not await opened.on_writer(opened.is_cut)
    await opened.on_writer(opened.roll_back)
    assert await opened.on_writer(partial(write, opened, 4)) == 0


async def test_a_wide_read_is_one_snapshot_whose_rows_are_counted(opened: PgStorage) -> None:
    counted: list[int] = []

    def read(db: Connection) -> tuple[object, object]:
        first = db.execute("SELECT stamp FROM cluster").fetchone()
        execute(opened.url, "UPDATE cluster SET stamp = stamp + 1")
        return first, db.execute("SELECT stamp FROM cluster").fetchone()

    assert await opened.read_wide(read, counted.append) == ((0,), (0,))
    assert len(counted) == 2
    assert await opened.read_wide(read, None) == ((1,), (1,))


async def test_a_read_that_fails_leaves_its_connection_to_others(opened: PgStorage) -> None:
    for read in (opened.read, partial(opened.read_wide, count=None)):
        for _ in range(2 * READERS):
            with pytest.raises(psycopg.errors.UndefinedTable):
                await read(lambda db: db.execute("SELECT * FROM nowhere"))
            assert await read(number) == 1


async def test_no_connection_is_left_where_the_database_has_no_tables() -> None:
    url = empty_database()
    made = PgStorage(f"{url}?application_name=refused")
    with pytest.raises(psycopg.errors.UndefinedTable):
        await made.open(Loops(), lambda: None)
    await until(lambda: not queries(url, "refused"))
    drop(url)
