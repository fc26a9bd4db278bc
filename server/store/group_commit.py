"""Runs write functions together in one transaction and commits them, on the writer's thread."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from peers.timekeeper import Timekeeper
from server.domain.errors import OutcomeUnknown, Unavailable
from server.store.connection import Connection
from server.store.stamps import Stamps
from server.store.storage import KeptMemberships, Storage

T = TypeVar("T")

GROUP_SECONDS = 0.02
"""Once a group has run for this long, the functions left over go into the next group."""


@dataclass(slots=True)
class Transaction:
    """The argument of a write function: the connection, inside a transaction, and its stamp."""

    connection: Connection
    stamp: int
    now: int = 0
    """The node's corrected time, microseconds since 1970. The stamp may be ahead of it."""
    sure: int = 0
    """The time that has certainly passed (`peers.clock`). Irreversible endings go by it."""
    seen: int = 0
    """The largest stamp received from another node; later stamps here are larger."""
    stored: int = 0
    """The largest stamp of synchronised data stored here."""
    memo: dict[tuple[str, ...], Any] = field(default_factory=dict)
    """Cached look-ups that stay valid in this transaction, for functions that take in many
    entities."""
    clock: Timekeeper = field(default_factory=Timekeeper)
    """The clock that `now` was read from."""
    memberships: KeptMemberships | None = None
    """What is known of projects from earlier transactions."""


WriteFunction = Callable[[Transaction], T]


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    value: Any = None
    error: Exception | None = None
    changed: bool = False
    """Whether it changed anything: a commit without changes proves nothing about the disk."""


class _WroteAndFailed(Exception):
    """A function failed after it had written: its group can't be committed as it is."""


class GroupCommit:
    """Runs groups of write functions, each function in a `Transaction` with a stamp of its own.

    When a function fails after it wrote, or the database fails, the group is rolled back and each
    function is run again alone.
    """

    def __init__(self, stamps: Stamps, storage: Storage) -> None:
        self._stamps = stamps
        self._storage = storage
        self.wrote = False
        """Whether a group has changed anything since this was last reset."""
        self.held_seconds = 0.0
        """How long all groups together have had the lock of writers."""

    def run(
        self, functions: list[WriteFunction[Any]], connection: Connection
    ) -> list[WriteOutcome]:
        """Run functions until GROUP_SECONDS have passed, and commit them together.

        Returns the final outcomes of the first functions; the others go into the next group.
        """
        storage = self._storage
        try:
            self._stamps.saw(storage.begin(connection))
        except storage.errors as error:
            return _all_refused(functions, storage.unavailable(error))
        begun = time.monotonic()
        try:
            return self._run_all(functions, connection)
        except OutcomeUnknown as unknown:
            return _all_refused(functions, unknown)
        except _WroteAndFailed as failed:
            return self._run_each(functions, connection, cast(Exception, failed.__cause__))
        except storage.errors as error:
            return self._run_each(functions, connection, storage.unavailable(error))
        finally:
            self.held_seconds += time.monotonic() - begun

    def _run_each(
        self, functions: list[WriteFunction[Any]], connection: Connection, refusal: Exception
    ) -> list[WriteOutcome]:
        """Roll back a failed group, and run each of its functions alone. `refusal` is the outcome
        of one that was alone already."""
        storage = self._storage
        try:
            storage.roll_back(connection)
        except storage.errors as failure:
            return _all_refused(functions, storage.unavailable(failure))
        if len(functions) == 1 or storage.is_cut(connection):
            return _all_refused(functions, refusal)
        return [self.run([function], connection)[0] for function in functions]

    def _run_all(
        self, functions: list[WriteFunction[Any]], connection: Connection
    ) -> list[WriteOutcome]:
        outcomes: list[WriteOutcome] = []
        changes = connection.total_changes
        deadline = time.monotonic() + GROUP_SECONDS
        for function in functions:
            outcomes.append(self._run_member(function, connection))
            if time.monotonic() > deadline:
                break
        if self._storage.is_lost():
            self._storage.roll_back(connection)
            return _all_refused(functions, _missing())
        self._storage.commit(connection, self._stamps.last)
        self.wrote |= connection.total_changes != changes
        return outcomes

    def _run_member(self, function: WriteFunction[Any], connection: Connection) -> WriteOutcome:
        changes = connection.total_changes
        now = self._stamps.clock.now()
        stamp, sure = self._stamps.next(now), self._stamps.clock.sure()
        transaction = Transaction(
            connection,
            stamp,
            now,
            sure,
            clock=self._stamps.clock,
            memberships=self._storage.memberships,
        )
        try:
            value = function(transaction)
            self._stamps.saw(transaction.seen)
            self._stamps.stored(transaction.stored)
            return WriteOutcome(value, changed=connection.total_changes != changes)
        except self._storage.errors:
            raise
        except Exception as error:
            # A full disk rolls back the whole transaction, and SQLite continues in autocommit.
            if connection.total_changes != changes or not connection.in_transaction:
                raise _WroteAndFailed from error
            return WriteOutcome(error=error)


def _missing() -> Unavailable:
    return Unavailable("The database is not at its path any more", reason="storage_missing")


def _all_refused(functions: list[WriteFunction[Any]], why: Exception) -> list[WriteOutcome]:
    return [WriteOutcome(error=why) for _ in functions]
