"""SQLite behind one writer with group commit, and readers that never wait for it (design §3)."""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import aiosqlite
import structlog

from peers.timekeeper import Timekeeper
from server.domain.clocks import Trouble
from server.domain.errors import Unavailable
from server.store import deferred
from server.store.metered import Count, metered
from server.store.presence import Presence
from server.store.stamps import Stamps
from server.util.loops import Loops, Turns, cancel

T = TypeVar("T")
Durability = Literal["FULL", "NORMAL"]

GROUP_MAX = 256
"""Members of one commit, at most."""
GROUP_SECONDS = 0.02
"""After this long in a group, who still waits goes into the next."""
QUIET_TURNS = 8
"""A group starts once nobody has joined it for so many turns of the event loop: callers that were
just answered send their next write within a few, and then wait for one commit instead of two."""
WAITING_MAX = 10_000
"""Writes that may wait at once; beyond it callers are refused rather than queued."""
WAL_TARGET = 4 * 1024 * 1024
WAL_CHECKPOINT = 8 * 1024 * 1024
"""Size of the write-ahead log at which it is copied back into the database."""
BUSY_MS = 5_000
WIDE_READERS = 2

log = structlog.get_logger()


@dataclass(slots=True)
class Transaction:
    """What a write function is given: the connection, inside a transaction, and its stamp."""

    connection: sqlite3.Connection
    stamp: int
    now: int = 0
    """The node's time, corrected: microseconds since 1970. The stamp may be ahead of it."""
    sure: int = 0
    """The time that is sure to have come (`peers.clock`): what ends for good goes by it."""
    seen: int = 0
    """The largest stamp that came in from another node: what is written next is after it."""
    stored: int = 0
    """The largest stamp of what is stored here for the mesh."""
    memo: dict[tuple[str, ...], Any] = field(default_factory=dict)
    """What was looked up here and still holds: a function that takes in much looks once."""
    clock: Timekeeper = field(default_factory=Timekeeper)
    """What `now` was read from."""


WriteFunction = Callable[[Transaction], T]
ReadFunction = Callable[[sqlite3.Connection], T]
_Member = tuple[WriteFunction[Any], "asyncio.Future[Any]"]


def connect(
    path: Path, *, durability: Durability = "FULL", busy_ms: int = BUSY_MS
) -> sqlite3.Connection:
    """A connection in autocommit mode, with the pragmas of design §3."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    with ExitStack() as half_open:
        half_open.enter_context(closing(connection))
        connection.execute(f"PRAGMA busy_timeout={busy_ms:d}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={durability}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA cache_size=-16000")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute(f"PRAGMA journal_size_limit={WAL_TARGET:d}")
        half_open.pop_all()
    return connection


class Database:
    """One writer, one reader on the event loop for single rows, a few threads for wide reads.

    `write` runs a function inside a transaction and returns once it is on disk. A function must
    decide before it writes, and may be run again: when anything in a group goes wrong, the group
    is rolled back and each member is run in a transaction of its own.
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
        self._wrote = False
        self.commits = 0
        self.writes = 0
        self.trouble: str | None = None
        """Why the last write failed for the database's own reasons; None once one succeeds."""
        self._said_lost = False
        self.corrupt = False
        """A broken page was found: no later success makes the file whole again."""

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
        self._writer = await _Connection(partial(connect, self.path, durability=self.durability))
        opened.push_async_callback(self._writer.close)
        self._wide = asyncio.Queue[_Connection]()
        for _ in range(WIDE_READERS):
            reader = await _Connection(partial(connect, self.path))
            opened.push_async_callback(reader.close)
            self._wide.put_nowait(reader)
        # A busy database must not hold up the event loop: point reads wait 50 ms at most.
        self._point = opened.enter_context(closing(connect(self.path, busy_ms=50)))
        # The log is there from the first look at the database on.
        self._point.execute("SELECT 1 FROM sqlite_master").fetchone()

    async def close(self) -> None:
        """Finish what waits, fold the log into the database, close everything."""
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
            await self._writer.run(_truncate_log)
        await self._writer.close()

    async def _rescue(self, what: str) -> None:
        """Keep what is acknowledged: no later start finds files that are not at their paths."""
        target = self.path.with_name(f"{self.path.name}.rescued-{time.time_ns() // 1_000_000_000}")
        try:
            await self._writer.run(partial(copy_to, target))
            log.warning("rescued", lost=what, file=target.name)
        except (sqlite3.Error, OSError) as error:
            log.error("not_rescued", lost=what, error=str(error))

    # --- reading ----------------------------------------------------------------------------

    def read(self, function: ReadFunction[T]) -> T:
        """Run a read of a few rows right here: a thread's hand-over would cost ten times more."""
        try:
            return function(self._point)
        except sqlite3.Error as error:
            raise self._noted(unavailable(error)) from error

    async def read_wide(self, function: ReadFunction[T], count: Count | None = None) -> T:
        """Run a read of many rows in a thread, on one consistent snapshot; `count` is told of each
        how many bytes it has."""
        try:
            return await self._on_wide(partial(_snapshot, function, count))
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
        """Run `function` in a transaction; return its result once that is durable.

        Raises what `function` raises, after which nothing of it is in the database, and
        Unavailable when the database itself can't take the write.
        """
        if self._closing:
            raise Unavailable("The node is stopping", reason="stopping")
        if self._writing.done():
            raise _writer_ended()
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable("Too many writes are waiting", reason="overloaded")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((function, future))
        self._wake.set()
        return await future

    def now(self) -> int:
        """The node's time, corrected: microseconds since 1970."""
        return self.clock.now()

    def time_trouble(self, name: Callable[[str], str] | None = None) -> Trouble | None:
        """What is wrong with the node's time, or what waits for it; as `Stamps.trouble`."""
        return self.stamps.trouble(self.read(partial(deferred.ahead, now=self.now())), name)

    def files_are_lost(self) -> bool:
        """Whether what is written now would go with this process: the database, or its log, is not
        at its path any more."""
        lost = self._presence.lost()
        if lost is not None and not self._said_lost:
            mend = "put it back, or stop the node: it leaves a copy of what it holds beside it"
            log.error("storage_missing", lost=lost.what, mend=mend)
            # What an unlinked log holds is copied back while somebody still has it open.
            self._loop.call_soon_threadsafe(self._log_is_large.set)
        self._said_lost = lost is not None
        return self._said_lost

    @property
    def waiting(self) -> int:
        """Writes that have no answer yet."""
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
        """Set once something more than now is committed here. Take it before you read."""
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
        """Nobody waits for a writer that has ended, however it did."""
        if not self._closing:
            self.trouble = _writer_ended().data["reason"]
            error = None if writing.cancelled() else writing.exception()
            log.error("writer_ended", error=type(error).__name__)
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(_writer_ended())

    async def _run(self, functions: list[WriteFunction[Any]]) -> list["_Outcome"]:
        try:
            outcomes: list[_Outcome] = await self._writer.run(partial(self._run_group, functions))
            return outcomes
        except Exception as error:
            # Whatever it is, this group is told of it, and the next is served.
            if not isinstance(error, sqlite3.Error):
                log.exception("group_failed")
            return [_Outcome(error=unavailable(error)) for _ in functions]

    async def _gather(self) -> None:
        """Let callers whose requests are already here join: a commit costs the same for all."""
        quiet = 0
        while quiet < QUIET_TURNS and len(self._waiting) < GROUP_MAX:
            waiting = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == waiting else 0

    def _resolve(self, outcomes: list["_Outcome"]) -> None:
        """Answer those who have waited longest, whom the outcomes are for."""
        for outcome in outcomes:
            _, future = self._waiting.popleft()
            if isinstance(outcome.error, Unavailable):
                self.trouble = self._noted(outcome.error).data["reason"]
            elif outcome.error is None:
                self.trouble = None
                self.writes += 1
            if future.done():
                continue
            if outcome.error is None:
                future.set_result(outcome.value)
            else:
                future.set_exception(outcome.error)
        self.commits += 1
        if self._wrote:
            # Who waits for news is not woken by a write that had nothing to change.
            self._wrote = False
            self._committed.set()
            self._committed = asyncio.Event()

    # --- on the writer's thread ---------------------------------------------------------------

    def _run_group(
        self, functions: list[WriteFunction[Any]], connection: sqlite3.Connection
    ) -> list["_Outcome"]:
        """Run as many functions as fit into the time, and commit them together.

        Each outcome is final. Fewer outcomes than functions: the rest goes into the next group.
        """
        try:
            # What a group left open that broke off would refuse every later one.
            _roll_back(connection)
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            return [_Outcome(error=unavailable(error)) for _ in functions]
        outcomes: list[_Outcome] = []
        changes = connection.total_changes
        deadline = time.monotonic() + GROUP_SECONDS
        try:
            for function in functions:
                outcomes.append(self._run_member(function, connection))
                if time.monotonic() > deadline:
                    break
            if self.files_are_lost():
                _roll_back(connection)
                return [_Outcome(error=_missing()) for _ in functions]
            connection.execute("COMMIT")
            self._wrote |= connection.total_changes != changes
            return outcomes
        except (sqlite3.Error, _WroteAndFailed) as error:
            _roll_back(connection)
            if len(functions) == 1:
                return [_Outcome(error=_cause(error))]
        return [self._run_group([function], connection)[0] for function in functions]

    def _run_member(
        self, function: WriteFunction[Any], connection: sqlite3.Connection
    ) -> "_Outcome":
        changes = connection.total_changes
        now = self.now()
        stamp, sure = self.stamps.next(now), self.clock.sure()
        transaction = Transaction(connection, stamp, now, sure, clock=self.clock)
        try:
            value = function(transaction)
            self.stamps.saw(transaction.seen)
            self.stamps.stored(transaction.stored)
            return _Outcome(value=value)
        except sqlite3.Error:
            raise
        except Exception as error:
            # A full disk rolls back the whole transaction, and SQLite goes on in autocommit.
            if connection.total_changes != changes or not connection.in_transaction:
                raise _WroteAndFailed from error
            return _Outcome(error=error)

    # --- the write-ahead log ------------------------------------------------------------------

    async def _checkpoint_loop(self) -> Turns:
        """Keep the log small: copy most of it back beside the writer, the rest between groups.

        Only when the writer itself copies the last pages does SQLite start the log anew.
        """
        while True:
            await self._log_is_large.wait()
            self._log_is_large.clear()
            try:
                await self._on_wide(_checkpoint)
                await self._writer.run(_checkpoint)
            except sqlite3.Error as error:
                # It is still to be done.
                self._log_is_large.set()
                raise unavailable(error) from error
            yield None


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: Any = None
    error: Exception | None = None


class _WroteAndFailed(Exception):
    """A member failed after it had written: its group can't be committed as it is."""


class _Connection(aiosqlite.Connection):
    """An aiosqlite connection that takes whole functions: one hop between threads for many
    statements."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)

    def __await__(self) -> Any:
        self._thread.daemon = True
        return super().__await__()

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        return cast(T, await self._execute(function, self._conn))  # type: ignore[no-untyped-call]


def _writer_ended() -> Unavailable:
    return Unavailable("The node's writer has ended: restart it", reason="writer_ended")


def _missing() -> Unavailable:
    return Unavailable("The database is not at its path any more", reason="storage_missing")


def unavailable(error: Exception) -> Unavailable:
    """A driver's error as a refusal with a reason that a program can read."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for prefix, reason in _REASONS.items():
        if name.startswith(prefix):
            return Unavailable("The database can't be used", reason=reason)
    return Unavailable("The database failed", reason="storage_failed")


_REASONS = {
    "SQLITE_FULL": "storage_full",
    "SQLITE_READONLY": "storage_read_only",
    "SQLITE_BUSY": "storage_locked",
    "SQLITE_LOCKED": "storage_locked",
    "SQLITE_CORRUPT": "storage_corrupt",
    "SQLITE_NOTADB": "storage_corrupt",
    "SQLITE_IOERR": "storage_failed",
    "SQLITE_CANTOPEN": "storage_failed",
}


def _cause(error: Exception) -> Exception:
    if isinstance(error, sqlite3.Error):
        return unavailable(error)
    return cast(Exception, error.__cause__)


def copy_to(target: Path, connection: sqlite3.Connection) -> None:
    """A consistent copy of a database, marked so that it gets an epoch of its own (design §3)."""
    target.touch(mode=0o600)
    with closing(sqlite3.connect(target)) as made:
        connection.backup(made)
        made.execute("INSERT INTO meta (name, value) VALUES ('copied', '1') ON CONFLICT DO NOTHING")
        made.commit()
        made.execute("PRAGMA journal_mode=DELETE")


def _snapshot(function: ReadFunction[T], count: Count | None, connection: sqlite3.Connection) -> T:
    connection.execute("BEGIN")
    try:
        if count is None:
            return function(connection)
        with metered(connection, count):
            return function(connection)
    finally:
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def _truncate_log(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
