"""SQLite with one writer that commits in groups, and readers that never wait for it (design §3)."""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import structlog

from server.domain.clocks import Trouble
from server.domain.errors import Unavailable
from server.store import deferred
from server.store.connection import (
    Durability,
    ReadFunction,
    WorkerConnection,
    checkpoint,
    connect,
    copy_to,
    snapshot,
    truncate_log,
    unavailable,
)
from server.store.group_commit import GroupCommit, WriteFunction, WriteOutcome
from server.store.metered import Count
from server.store.presence import Presence
from server.store.stamps import Stamps
from server.util.loops import Loops, Turns, cancel

T = TypeVar("T")

GROUP_MAX = 256
"""The most writes in one commit."""
QUIET_TURNS = 8
"""A group starts when no write has joined it for this many turns of the event loop: callers that
were just answered send their next write within a few turns, and so wait for one commit instead of
two."""
WAITING_MAX = 10_000
"""The most writes that may wait; further callers are refused."""
WAL_CHECKPOINT = 8 * 1024 * 1024
"""Bytes of the write-ahead log from which on it is copied back into the database."""
WIDE_READERS = 2

log = structlog.get_logger()


_Member = tuple[WriteFunction[Any], "asyncio.Future[Any]"]


class Database:
    """One writer, one reader on the event loop for a few rows, and threads for wide reads.

    `write` runs a function inside a transaction and returns once it is on disk. A function must
    decide before it writes, and may be run twice: when a function in a group fails after writing,
    the group is rolled back and each function is run in its own transaction.
    """

    def __init__(
        self,
        path: Path,
        durability: Durability = "FULL",
        stamps: Stamps | None = None,
        loops: Loops | None = None,
    ) -> None:
        self.path = path
        self._loops = loops or Loops()
        self._log = path.with_name(f"{path.name}-wal")
        self.durability = durability
        self.stamps = stamps or Stamps()
        self.clock = self.stamps.clock
        self._waiting: deque[_Member] = deque()
        self._wake = asyncio.Event()
        self._committed = asyncio.Event()
        self._log_is_large = asyncio.Event()
        self._closing = False
        self._group_commit = GroupCommit(self.stamps, self.files_are_lost)
        self.commits = 0
        self.writes = 0
        """How many writes have changed something."""
        self.trouble: str | None = None
        """Why the database failed a write; None once the health check has written a probe. A small
        write proves little: a full disk may still have room for it."""
        self.failures = 0
        """How many writes the database has failed."""
        self._said_lost = False
        self.corrupt = False
        """A broken page was found. Later successes don't reset this."""

    async def open(self, last_stamp: int) -> None:
        """Open the connections and start the writer. The schema must be in place already.

        Raises Unavailable, with nothing left open.
        """
        self.stamps.begin(last_stamp)
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as half_open:
            try:
                await self._connect(half_open)
            except sqlite3.Error as error:
                raise unavailable(error) from error
            half_open.pop_all()
        self._presence = Presence(self.path)
        self._writing = asyncio.create_task(self._write_loop(), name="cacp-writer")
        self._writing.add_done_callback(self._refuse_waiting)
        self._checkpointing = self._loops.start("checkpoint", self._checkpoint_loop)

    async def _connect(self, opened: AsyncExitStack) -> None:
        self._writer = await WorkerConnection(
            partial(connect, self.path, durability=self.durability)
        )
        opened.push_async_callback(self._writer.close)
        self._wide = asyncio.Queue[WorkerConnection]()
        for _ in range(WIDE_READERS):
            reader = await WorkerConnection(partial(connect, self.path))
            opened.push_async_callback(reader.close)
            self._wide.put_nowait(reader)
        # A busy database must not block the event loop: point reads wait at most 50 ms.
        self._point = opened.enter_context(closing(connect(self.path, busy_ms=50)))
        # The first read creates the log.
        self._point.execute("SELECT 1 FROM sqlite_master").fetchone()

    async def close(self) -> None:
        """Finish waiting writes, fold the log into the database, and close all connections."""
        self._closing = True
        self._wake.set()
        await asyncio.wait([self._writing])
        await cancel([self._checkpointing])
        for _ in range(WIDE_READERS):
            await (await self._wide.get()).close()
        self._point.close()
        if (lost := self._presence.lost()) is not None:
            await self._rescue(lost.what)
        with suppress(sqlite3.Error):
            await self._writer.run(truncate_log)
        await self._writer.close()

    async def _rescue(self, what: str) -> None:
        """Save acknowledged writes to a copy: no later start would find the moved or deleted
        files."""
        target = self.path.with_name(f"{self.path.name}.rescued-{time.time_ns() // 1_000_000_000}")
        try:
            await self._writer.run(partial(copy_to, target))
            log.warning("rescued", lost=what, file=target.name)
        except (sqlite3.Error, OSError) as error:
            log.error("not_rescued", lost=what, error=str(error))

    # --- reading ----------------------------------------------------------------------------

    def read(self, function: ReadFunction[T]) -> T:
        """Run a read of a few rows on this thread: switching threads would cost ten times more."""
        try:
            return function(self._point)
        except sqlite3.Error as error:
            raise self._noted(unavailable(error)) from error

    async def read_wide(self, function: ReadFunction[T], count: Count | None = None) -> T:
        """Run a read of many rows in a thread, on one consistent snapshot. `count` is called with
        the bytes of each row."""
        try:
            return await self._on_wide(partial(snapshot, function, count))
        except sqlite3.Error as error:
            raise self._noted(unavailable(error)) from error

    def _noted(self, refusal: Unavailable) -> Unavailable:
        self.corrupt |= refusal.data["reason"] == "storage_corrupt"
        return refusal

    async def _on_wide(self, function: ReadFunction[T]) -> T:
        connection = await self._wide.get()
        try:
            return await connection.run(function)
        finally:
            self._wide.put_nowait(connection)

    # --- writing ----------------------------------------------------------------------------

    async def write(self, function: WriteFunction[T]) -> T:
        """Run `function` in a transaction; returns its result once that is durable.

        Raises what `function` raises, without any of its changes, and Unavailable when the database
        can't take the write.
        """
        if self._closing:
            raise Unavailable("The node is stopping", reason="stopping")
        if self._writing.done():
            raise _writer_ended()
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable(
                "Too many writes are queued; retry in a few seconds", reason="overloaded"
            )
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((function, future))
        self._wake.set()
        return await future

    def now(self) -> int:
        """The node's time, corrected: microseconds since 1970."""
        return self.clock.now()

    def time_trouble(self, name: Callable[[str], str] | None = None) -> Trouble | None:
        """The gravest problem with the node's time, as `Stamps.trouble` returns it."""
        return self.stamps.trouble(self.read(partial(deferred.ahead, now=self.now())), name)

    def files_are_lost(self) -> bool:
        """Whether the database or its log is no longer at its path, so that new writes would be
        lost with this process."""
        lost = self._presence.lost()
        if lost is not None and not self._said_lost:
            mend = "put it back, or stop the node, which then saves a copy beside the database"
            log.error("storage_missing", lost=lost.what, mend=mend)
            # While a connection has the unlinked log open, it can still be copied back.
            self._loop.call_soon_threadsafe(self._log_is_large.set)
        self._said_lost = lost is not None
        return self._said_lost

    @property
    def waiting(self) -> int:
        """The number of unanswered writes."""
        return len(self._waiting)

    @property
    def log_bytes(self) -> int:
        """Size of the write-ahead log, in bytes."""
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    @property
    def next_commit(self) -> asyncio.Event:
        """An event that the next commit sets. Take it before you read."""
        return self._committed

    async def _write_loop(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._gather()
                group = islice(self._waiting, GROUP_MAX)
                self._resolve(await self._run([function for function, _ in group]))
                if self.log_bytes > WAL_CHECKPOINT:
                    self._log_is_large.set()

    def _refuse_waiting(self, writing: "asyncio.Task[None]") -> None:
        """Fail all waiting writes when the writer has ended, for whatever reason."""
        if not self._closing:
            self.trouble = _writer_ended().data["reason"]
            error = None if writing.cancelled() else writing.exception()
            log.error("writer_ended", error=type(error).__name__)
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(_writer_ended())

    async def _run(self, functions: list[WriteFunction[Any]]) -> list[WriteOutcome]:
        try:
            outcomes: list[WriteOutcome] = await self._writer.run(
                partial(self._group_commit.run, functions)
            )
            return outcomes
        except Exception as error:
            # Whatever the error, this group is answered and the next one served.
            if not isinstance(error, sqlite3.Error):
                log.exception("group_failed")
            return [WriteOutcome(error=unavailable(error)) for _ in functions]

    async def _gather(self) -> None:
        """Let callers whose requests have already arrived join: one commit costs the same for
        all."""
        quiet = 0
        while quiet < QUIET_TURNS and len(self._waiting) < GROUP_MAX:
            waiting = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == waiting else 0

    def _resolve(self, outcomes: list[WriteOutcome]) -> None:
        """Answer the longest-waiting callers with the outcomes, which are in their order."""
        for outcome in outcomes:
            _, future = self._waiting.popleft()
            if isinstance(outcome.error, Unavailable):
                self.trouble = self._noted(outcome.error).data["reason"]
                self.failures += 1
            elif outcome.changed:
                self.writes += 1
            if future.done():
                continue
            if outcome.error is None:
                future.set_result(outcome.value)
            else:
                future.set_exception(outcome.error)
        self.commits += 1
        if self._group_commit.wrote:
            # A write without changes does not wake callers that wait for news.
            self._group_commit.wrote = False
            self._committed.set()
            self._committed = asyncio.Event()

    # --- the write-ahead log ------------------------------------------------------------------

    async def _checkpoint_loop(self) -> Turns:
        """Keep the log small: copy most of it back concurrently with the writer, the rest between
        groups.

        SQLite restarts the log only when the writer itself copies the last pages.
        """
        while True:
            await self._log_is_large.wait()
            self._log_is_large.clear()
            try:
                await self._on_wide(checkpoint)
                await self._writer.run(checkpoint)
            except sqlite3.Error as error:
                # The checkpoint is still due.
                self._log_is_large.set()
                raise unavailable(error) from error
            yield None


def _writer_ended() -> Unavailable:
    return Unavailable("The node's writer has ended: restart it", reason="writer_ended")
