"""A node's database: one writer that commits in groups, and readers that never wait for it (design
§3)."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import structlog

from server.domain.clocks import Trouble
from server.domain.errors import Unavailable
from server.domain.location import Location
from server.store import deferred
from server.store.connection import ReadFunction
from server.store.group_commit import GroupCommit, Transaction, WriteFunction, WriteOutcome
from server.store.metered import Count
from server.store.opening import Durability, storage_at
from server.store.stamps import Stamps
from server.util.duty import acting_for
from server.util.loops import Loops

T = TypeVar("T")

GROUP_MAX = 256
"""The most writes in one commit."""
QUIET_TURNS = 8
"""A group starts when no write has joined it for this many turns of the event loop: callers that
were just answered send their next write within a few turns, and so wait for one commit instead of
two."""
WAITING_MAX = 10_000
"""The most writes that may wait; further callers are refused."""

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
        location: Location,
        durability: Durability = "FULL",
        stamps: Stamps | None = None,
        loops: Loops | None = None,
    ) -> None:
        self.storage = storage_at(location, durability)
        self._loops = loops or Loops()
        self.stamps = stamps or Stamps()
        self.clock = self.stamps.clock
        self._waiting: deque[_Member] = deque()
        self._wake = asyncio.Event()
        self._committed = asyncio.Event()
        self._closing = False
        self._group_commit = GroupCommit(self.stamps, self.storage)
        self.commits = 0
        self.writes = 0
        """How many writes have changed something."""
        self.trouble: str | None = None
        """Why the database failed a write; None once the health check has written a probe. A small
        write proves little: a full disk may still have room for it."""
        self.failures = 0
        """How many writes the database has failed."""
        self.corrupt = False
        """A broken page was found. Later successes don't reset this."""

    async def open(self, last_stamp: int) -> None:
        """Open the connections and start the writer. The schema must be in place already.

        Raises Unavailable, with nothing left open.
        """
        self.stamps.begin(last_stamp)
        try:
            await self.storage.open(self._loops, self._news)
        except self.storage.errors as error:
            raise self.storage.unavailable(error) from error
        if self.storage.shared is not None:
            # Replicas go by one clock, whatever the clocks of their machines say.
            self.clock.go_by(self.storage.shared.now)
        self._writing = asyncio.create_task(self._write_loop(), name="cacp-writer")
        self._writing.add_done_callback(self._refuse_waiting)

    async def close(self) -> None:
        """Finish waiting writes and close the database."""
        self._closing = True
        self._wake.set()
        await asyncio.wait([self._writing])
        await self.storage.close()

    # --- reading ----------------------------------------------------------------------------

    async def read(self, function: ReadFunction[T]) -> T:
        """Run a read of a few rows."""
        try:
            return await self.storage.read(function)
        except self.storage.errors as error:
            raise self._noted(self.storage.unavailable(error)) from error

    async def read_wide(self, function: ReadFunction[T], count: Count | None = None) -> T:
        """Run a read of many rows in a thread, on one consistent snapshot. `count` is called with
        the bytes of each row."""
        try:
            return await self.storage.read_wide(function, count)
        except self.storage.errors as error:
            raise self._noted(self.storage.unavailable(error)) from error

    def _noted(self, refusal: Unavailable) -> Unavailable:
        self.corrupt |= refusal.data["reason"] == "storage_corrupt"
        return refusal

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
        self._waiting.append((self._fenced(function), future))
        self._wake.set()
        return await future

    def _fenced(self, function: WriteFunction[T]) -> WriteFunction[T]:
        """What a task writes in the name of a duty is written only while that is still held."""
        shared = self.storage.shared
        duty = None if shared is None else acting_for()
        if duty is None or shared is None:
            return function

        def fenced(transaction: Transaction) -> T:
            shared.verify(transaction.connection, duty)
            return function(transaction)

        return fenced

    def now(self) -> int:
        """The node's time, corrected: microseconds since 1970."""
        return self.clock.now()

    async def time_trouble(self, name: Callable[[str], str] | None = None) -> Trouble | None:
        """The gravest problem with the node's time, as `Stamps.trouble` returns it."""
        return self.stamps.trouble(await self.read(partial(deferred.ahead, now=self.now())), name)

    def files_are_lost(self) -> bool:
        """Whether what is written now would be lost with this process."""
        return self.storage.is_lost()

    @property
    def waiting(self) -> int:
        """The number of unanswered writes."""
        return len(self._waiting)

    @property
    def lock_seconds(self) -> float:
        """How long this process has had the lock of writers, which it shares with replicas."""
        return self._group_commit.held_seconds

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
                self.storage.wrote()

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
            outcomes: list[WriteOutcome] = await self.storage.on_writer(
                partial(self._group_commit.run, functions)
            )
            return outcomes
        except Exception as error:
            # Whatever the error, this group is answered and the next one served.
            if not isinstance(error, self.storage.errors):
                log.exception("group_failed")
            return [WriteOutcome(error=self.storage.unavailable(error)) for _ in functions]

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
            self._news()

    def _news(self) -> None:
        """Wake who waits for the next commit."""
        self._committed.set()
        self._committed = asyncio.Event()


def _writer_ended() -> Unavailable:
    return Unavailable("The node's writer has ended: restart it", reason="writer_ended")
