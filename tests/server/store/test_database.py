"""One writer with group commit, and readers that don't wait for it (design §3)."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from server.domain.clocks import Deferred
from server.domain.errors import Conflict, Unavailable
from server.domain.location import Location
from server.store import changes, database, group_commit
from server.store.connection import Connection
from server.store.database import Database
from server.store.group_commit import GROUP_SECONDS, Transaction, WriteFunction
from server.store.opening import connect
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def opened(location: Location) -> AsyncIterator[Database]:
    opened = Database(location)
    await opened.open(last_stamp=0)
    try:
        yield opened
    finally:
        await opened.close()


def put(name: str, value: str = "") -> WriteFunction[str]:
    def write(transaction: Transaction) -> str:
        changes.put_meta(transaction.connection, name, value)
        return name

    return write


def refuse(transaction: Transaction) -> None:
    raise Conflict("taken")


def put_and_refuse(transaction: Transaction) -> None:
    changes.put_meta(transaction.connection, "half", "written")
    raise Conflict("too late")


def break_(transaction: Transaction) -> None:
    transaction.connection.execute("SELECT nonsense")


def names(location: Location) -> set[str]:
    with closing(connect(location)) as db:
        return {name for (name,) in db.execute("SELECT name FROM meta")}


def end_writer() -> None:
    [writer] = [task for task in asyncio.all_tasks() if task.get_name() == "cacp-writer"]
    writer.cancel()


async def gather(db: Database, *functions: WriteFunction[Any]) -> list[Any]:
    """Outcomes of writes that come at once: results, and exceptions as their types."""
    outcomes = await asyncio.gather(*map(db.write, functions), return_exceptions=True)
    return [type(one) if isinstance(one, Exception) else one for one in outcomes]


# --- durability ---------------------------------------------------------------------------------


async def test_a_write_is_on_disk_when_it_returns(location: Location) -> None:
    async with opened(location) as db:
        assert await db.write(put("a")) == "a"
        assert "a" in names(location)


# --- group commit -------------------------------------------------------------------------------


async def test_writes_that_come_at_once_share_a_commit(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the machine is.
    monkeypatch.setattr(group_commit, "GROUP_SECONDS", PATIENCE)
    async with opened(location) as db:
        await gather(db, *(put(f"n{number}") for number in range(100)))
        assert (db.writes, db.commits) == (100, 1)


async def test_a_write_that_changes_nothing_is_not_counted(location: Location) -> None:
    async with opened(location) as db:
        assert await db.write(lambda transaction: transaction.stamp) > 0
        assert (db.writes, db.commits) == (0, 1)


async def test_a_refused_member_leaves_the_others(location: Location) -> None:
    async with opened(location) as db:
        assert await gather(db, put("a"), refuse, put("b")) == ["a", Conflict, "b"]
        assert db.commits == 1
        assert names(location) >= {"a", "b"}


async def test_a_member_that_fails_after_it_wrote_leaves_nothing_and_the_others_all(
    location: Location,
) -> None:
    async with opened(location) as db:
        assert await gather(db, put("a"), put_and_refuse, put("b")) == ["a", Conflict, "b"]
        assert names(location) >= {"a", "b"}
        assert "half" not in names(location)


async def test_a_member_that_the_database_refuses_leaves_the_others(location: Location) -> None:
    async with opened(location) as db:
        assert await gather(db, put("a"), break_, put("b")) == ["a", Unavailable, "b"]
        assert names(location) >= {"a", "b"}


async def test_a_member_sees_what_those_before_it_wrote(location: Location) -> None:
    def add(transaction: Transaction) -> int:
        row = transaction.connection.execute("SELECT count(*) FROM meta").fetchone()
        changes.put_meta(transaction.connection, f"n{row[0]}", "")
        return int(row[0])

    async with opened(location) as db:
        counts = await gather(db, *(add for _ in range(20)))
        assert counts == list(range(counts[0], counts[0] + 20))


async def test_stamps_rise_and_are_after_the_last_known(location: Location) -> None:
    """Design §7: stamps are never behind what the node has seen."""
    db = Database(location)
    last = db.now() + 60_000_000
    await db.open(last)
    stamps = await gather(db, *(lambda transaction: transaction.stamp for _ in range(50)))
    await db.close()
    assert stamps == list(range(last + 1, last + 51))


@pytest.mark.parametrize("ahead", [3_600_000_000, 400 * 86_400_000_000])
async def test_stamps_come_back_to_the_time_after_a_clock_was_wrong(
    location: Location, ahead: int
) -> None:
    """It is no trouble either: none of it is the stamp of anything."""
    db = Database(location)
    begun = db.now()
    await db.open(begun + ahead)
    stamps = await gather(db, *(lambda transaction: transaction.stamp for _ in range(50)))
    assert stamps == sorted(set(stamps))
    assert begun <= stamps[0] <= stamps[-1] <= db.now() + 50
    assert db.stamps.trouble(Deferred()) is None
    await db.write(store(begun + ahead))
    found = db.stamps.trouble(Deferred())
    await db.close()
    assert found is not None
    assert found.reason == "stamps_ahead"


def store(stamp: int) -> WriteFunction[None]:
    """Write what has a stamp of its own."""

    def write(transaction: Transaction) -> None:
        transaction.stored = stamp

    return write


async def test_a_caller_that_gave_up_does_not_stop_its_group(location: Location) -> None:
    async with opened(location) as db:
        gone = asyncio.ensure_future(db.write(put("gone")))
        stays = asyncio.ensure_future(db.write(put("stays")))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == "stays"


async def test_too_many_waiting_writes_are_refused_at_once(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAITING_MAX", 3)
    async with opened(location) as db:
        outcomes = await gather(db, *(put(f"n{number}") for number in range(5)))
        assert outcomes == ["n0", "n1", "n2", Unavailable, Unavailable]


async def test_a_long_queue_goes_in_several_groups(location: Location) -> None:
    async with opened(location) as db:
        outcomes = await gather(db, *(put(f"n{number}") for number in range(600)))
        assert outcomes == [f"n{number}" for number in range(600)]
        assert db.commits >= 3


async def test_a_slow_group_lets_the_rest_wait_for_the_next(location: Location) -> None:
    pause = threading.Event()

    def slow(transaction: Transaction) -> None:
        pause.wait(GROUP_SECONDS * 2)

    async with opened(location) as db:
        await gather(db, slow, put("a"), put("b"))
        assert db.commits == 2
        assert names(location) >= {"a", "b"}


# --- trouble ------------------------------------------------------------------------------------


async def test_what_nobody_expected_fails_its_group_and_the_next_is_served(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confused(last: int, now: int, limit: int) -> int:
        raise RuntimeError("what time is it?")

    async with opened(location) as db:
        with monkeypatch.context() as patched:
            patched.setattr("server.store.stamps.tick", confused)
            assert await gather(db, put("a"), put("b")) == [Unavailable, Unavailable]
            assert db.trouble == "storage_failed"
        assert await asyncio.wait_for(db.write(put("c")), PATIENCE) == "c"
    assert "a" not in names(location)


async def test_nobody_waits_for_a_writer_that_has_ended(location: Location) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(transaction: Transaction) -> None:
        begun.set()
        go_on.wait(PATIENCE)

    async with opened(location) as db:
        waiting = asyncio.ensure_future(gather(db, slow, put("a")))
        await asyncio.to_thread(begun.wait, PATIENCE)
        end_writer()
        assert await asyncio.wait_for(waiting, PATIENCE) == [Unavailable, Unavailable]
        go_on.set()
        with pytest.raises(Unavailable) as refused:
            await asyncio.wait_for(db.write(put("b")), PATIENCE)
        assert (refused.value.data["reason"], db.trouble) == ("writer_ended", "writer_ended")


async def test_trouble_is_kept_whatever_is_written_afterwards(location: Location) -> None:
    async with opened(location) as db:
        assert db.trouble is None
        await gather(db, break_)
        assert db.trouble == "storage_failed"
        await gather(db, refuse)
        await db.write(put("a"))
        assert db.trouble == "storage_failed"


# --- reading ------------------------------------------------------------------------------------


async def test_a_wide_read_sees_one_snapshot(location: Location) -> None:
    between = threading.Event()
    written = threading.Event()

    def read_twice(connection: Connection) -> tuple[int, int]:
        first = connection.execute("SELECT count(*) FROM meta").fetchone()[0]
        between.set()
        assert written.wait(PATIENCE)
        return first, connection.execute("SELECT count(*) FROM meta").fetchone()[0]

    async with opened(location) as db:
        reading = asyncio.ensure_future(db.read_wide(read_twice))
        await asyncio.to_thread(between.wait, PATIENCE)
        await db.write(put("a"))
        written.set()
        first, second = await reading
        assert first == second
        assert "a" in names(location)


async def test_reads_fail_as_refusals(location: Location) -> None:
    async with opened(location) as db:
        with pytest.raises(Unavailable):
            await db.read(lambda connection: connection.execute("SELECT nonsense"))
        with pytest.raises(Unavailable):
            await db.read_wide(lambda connection: connection.execute("SELECT nonsense"))


async def test_more_wide_reads_than_readers_take_turns(location: Location) -> None:
    async with opened(location) as db:
        found = await asyncio.gather(*(db.read_wide(changes.can_read) for _ in range(20)))
        assert found == [True] * 20


async def test_who_follows_the_log_hears_of_each_commit(location: Location) -> None:
    async with opened(location) as db:
        heard = db.next_commit
        await db.write(put("a"))
        assert heard.is_set()
        assert not db.next_commit.is_set()


# --- the end ------------------------------------------------------------------------------------


@pytest.mark.sqlite  # Elsewhere another replica may have written.
async def test_a_write_that_changed_nothing_is_no_news(location: Location) -> None:
    async with opened(location) as database:
        heard = database.next_commit
        await database.write(lambda transaction: None)
        assert not heard.is_set()
        await database.write(put("a"))
        assert heard.is_set()


async def test_close_finishes_what_waits(location: Location) -> None:
    db = Database(location)
    await db.open(0)
    waiting = [asyncio.ensure_future(db.write(put(f"n{number}"))) for number in range(600)]
    await asyncio.sleep(0)
    await db.close()
    assert await asyncio.gather(*waiting) == [f"n{number}" for number in range(600)]
    assert names(location) >= {f"n{number}" for number in range(600)}


async def test_close_waits_for_the_group_that_is_being_written(location: Location) -> None:
    begun = threading.Event()
    go_on = threading.Event()

    def slow(transaction: Transaction) -> str:
        begun.set()
        go_on.wait(PATIENCE)
        return "done"

    db = Database(location)
    await db.open(0)
    write = asyncio.ensure_future(db.write(slow))
    await asyncio.to_thread(begun.wait, PATIENCE)
    closing_ = asyncio.ensure_future(db.close())
    await asyncio.sleep(0)
    assert not closing_.done()
    go_on.set()
    await closing_
    assert await asyncio.wait_for(write, PATIENCE) == "done"


async def test_after_close_a_write_is_refused(location: Location) -> None:
    async with opened(location) as db:
        await db.write(put("a"))
    with pytest.raises(Unavailable) as refused:
        await db.write(put("b"))
    assert refused.value.data["reason"] == "stopping"


@pytest.mark.sqlite
async def test_a_broken_page_is_not_forgotten_when_a_write_succeeds(path: Path) -> None:
    def broken(connection: Connection) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorname = "SQLITE_CORRUPT"
        raise error

    async with opened(path) as db:
        assert not db.corrupt
        with pytest.raises(Unavailable):
            await db.read(broken)
        await db.write(put("a"))
        assert db.corrupt
