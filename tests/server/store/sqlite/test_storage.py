"""A node's file: its log, its disk and its locks, through the database that writes to it."""

import asyncio
import shutil
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from server.domain.errors import Unavailable
from server.store import changes
from server.store.connection import Connection
from server.store.database import Database
from server.store.group_commit import Transaction, WriteFunction
from server.store.opening import Durability, connect
from server.store.sqlite import connection, storage
from server.store.sqlite.migrate import prepare
from server.store.sqlite.storage import SqliteStorage
from server.store.storage import WIDE_READERS
from tests.faults import shim
from tests.faults.shim import Call, Fault
from tests.server.store.test_database import gather, names, opened, put
from tests.support.waiting import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.sqlite]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def log_bytes(db: Database) -> int:
    return int(db.storage.facts()["logBytes"])


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize(("durability", "pragma"), [("FULL", 2), ("NORMAL", 1)])
async def test_durability_is_full_unless_set_otherwise(
    path: Path, durability: Durability, pragma: int
) -> None:
    def synchronous(transaction: Transaction) -> Any:
        return transaction.connection.execute("PRAGMA synchronous").fetchone()[0]

    db = Database(path, durability)
    await db.open(0)
    assert await db.write(synchronous) == pragma
    await db.close()
    assert Database(path).storage.facts()["durability"] == "FULL"


# --- trouble --------------------------------------------------------------------------------------


async def test_a_folder_that_was_replaced_does_not_end_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "data" / "node.db"
    prepare(path)
    async with opened(path) as db:
        path.parent.rename(tmp_path / "elsewhere")
        path.parent.write_text("a file where the folder was")
        for _ in range(2):
            await asyncio.gather(
                asyncio.wait_for(db.write(put("a")), PATIENCE), return_exceptions=True
            )
        assert log_bytes(db) == 0
        path.parent.unlink()
        (tmp_path / "elsewhere").rename(path.parent)
        assert await asyncio.wait_for(db.write(put("b")), PATIENCE) == "b"


async def test_a_locked_database_says_so_and_recovers(path: Path) -> None:
    def wait_less(transaction: Transaction) -> None:
        transaction.connection.execute("PRAGMA busy_timeout=50")

    async with opened(path) as db:
        await db.write(wait_less)
        with closing(connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable) as refused:
                await db.write(put("a"))
            assert refused.value.data["reason"] == "storage_locked"
            assert await db.read(changes.can_read), "readers don't wait for a writer"
            other.execute("ROLLBACK")
        assert await db.write(put("a")) == "a"


async def test_a_full_disk_refuses_the_group_whole_and_recovers(path: Path) -> None:
    """Design §3: when the disk is full SQLite rolls back the whole transaction."""

    def limit(pages: int) -> WriteFunction[None]:
        def write(transaction: Transaction) -> None:
            transaction.connection.execute(f"PRAGMA max_page_count = {pages}")

        return write

    async with opened(path) as db:
        await db.write(limit(1))
        outcomes = await gather(db, put("small"), put("large", "x" * 1_000_000), put("later"))
        assert outcomes == ["small", Unavailable, "later"]
        with pytest.raises(Unavailable) as refused:
            await db.write(put("large", "x" * 1_000_000))
        assert refused.value.data["reason"] == "storage_full"
        assert names(path) >= {"small", "later"}
        assert "large" not in names(path)
        await db.write(limit(1_000_000))
        assert await db.write(put("large", "x" * 1_000_000)) == "large"


# --- the log --------------------------------------------------------------------------------------


async def test_the_write_ahead_log_stays_bounded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "WAL_CHECKPOINT", 1024 * 1024)
    copied: list[None] = []
    checkpoint = connection.checkpoint
    monkeypatch.setattr(storage, "checkpoint", lambda on: copied.append(checkpoint(on)))
    async with opened(path) as db:
        for number in range(40):
            before = len(copied)
            await db.write(put("large", str(number) * 200_000))
            if log_bytes(db) > storage.WAL_CHECKPOINT:
                # Beside the writer, then by it: a machine that is slow here writes on meanwhile.
                await until(lambda before=before: len(copied) == before + 2)  # type: ignore[misc]
        assert copied
        assert log_bytes(db) < 4 * 1024 * 1024


async def test_after_close_the_log_is_folded_in(path: Path) -> None:
    async with opened(path) as db:
        await db.write(put("a"))
    assert log_bytes(db) == 0


# --- a disk that fails at the start ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["open", "read"])
async def test_an_open_that_fails_is_a_refusal_and_leaves_nothing_open(
    path: Path, kind: str
) -> None:
    """Each call in turn, of those that an open makes; ResourceWarning tells what is left open."""
    for number in count():
        asked = 0

        def fault(call: Call, number: int = number) -> Fault | None:
            nonlocal asked
            asked += call.kind == kind
            return "EIO" if call.kind == kind and asked == number + 1 else None

        with shim.below(path.parent, fault):
            db = Database(path)
            [failed] = await asyncio.gather(db.open(0), return_exceptions=True)
            if failed is None:
                await db.close()
            else:
                assert isinstance(failed, Unavailable)
                assert failed.data["reason"] == "storage_failed"
        if asked <= number:
            assert number > 3
            return


# --- the storage itself ---------------------------------------------------------------------------


async def test_it_is_shared_with_nobody(path: Path) -> None:
    assert SqliteStorage(path).shared is None
    async with opened(path) as db:
        assert await db.storage.on_writer(db.storage.begin) == 0
        await db.storage.on_writer(db.storage.roll_back)
        assert not await db.storage.on_writer(db.storage.is_cut)


async def test_a_transaction_that_was_left_open_is_ended_by_the_next(path: Path) -> None:
    def leave_open(connection: Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        changes.put_meta(connection, "half", "written")

    async with opened(path) as db:
        await db.storage.on_writer(leave_open)
        await db.write(put("a"))
        assert "half" not in names(path)
        assert "a" in names(path)


async def test_a_read_of_a_few_rows_runs_at_once(path: Path) -> None:
    """Switching threads would cost more than it."""
    async with opened(path) as db:
        with pytest.raises(StopIteration) as done:
            db.storage.read(changes.can_read).__await__().__next__()
        assert done.value.value is True


async def test_what_it_says_of_itself(path: Path) -> None:
    async with opened(path) as db:
        await db.write(put("a"))
        facts = db.storage.facts()
        assert facts["kind"] == "sqlite"
        assert facts["bytes"] == path.stat().st_size
        assert facts["logBytes"] == log_bytes(db) > 0
        assert facts["freeBytes"] > 0


class Usage(NamedTuple):
    free: int


async def test_a_disk_that_is_nearly_full_is_seen(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SqliteStorage(path)
    for free, is_short in [(storage.LOW_DISK - 1, True), (storage.LOW_DISK, False)]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: Usage(free))
        assert made.is_short() == is_short
        assert made.broken() is None


def test_a_folder_that_is_gone_is_a_missing_database(tmp_path: Path) -> None:
    made = SqliteStorage(tmp_path / "gone" / "node.db")
    assert made.broken() == "storage_missing"
    assert not made.is_short()
    facts = made.facts()
    assert (facts["bytes"], facts["freeBytes"], facts["logBytes"]) == (None, None, 0)


async def test_a_file_that_was_moved_away_is_lost_and_rescued_at_the_end(path: Path) -> None:
    """What was acknowledged is in no file at the path any more."""
    async with opened(path) as db:
        await db.write(put("before"))
        path.rename(path.with_name("elsewhere"))
        assert db.files_are_lost()
        with pytest.raises(Unavailable) as refused:
            await db.write(put("after"))
        assert refused.value.data["reason"] == "storage_missing"
    [rescued] = path.parent.glob(f"{path.name}.rescued-*")
    assert "before" in names(rescued)
    assert "after" not in names(rescued)


async def test_wide_reads_take_turns_and_leave_their_connections(path: Path) -> None:
    async with opened(path) as db:

        def fail(connection: Connection) -> None:
            raise ValueError("whatever")

        for _ in range(2 * WIDE_READERS):
            with pytest.raises(ValueError, match="whatever"):
                await db.read_wide(fail)
        assert await db.read_wide(changes.can_read)
