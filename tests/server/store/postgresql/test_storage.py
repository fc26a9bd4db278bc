"""Reads and writes of a replica, on connections that end and that say nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from server.domain.location import DatabaseUrl
from server.store.connection import Connection
from server.store.postgresql import storage
from server.store.postgresql.errors import ServerSilent
from server.store.postgresql.storage import READERS, PgStorage
from server.util.loops import Loops
from tests.support.postgresql import drop, execute, fresh_database
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
    assert connections(opened.url, "other") > 1
    await other.close()
    await until(lambda: connections(opened.url, "other") == 0)


def connections(url: str, name: str) -> int:
    [[count]] = execute(
        url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", name
    )
    return int(count)
