"""The duty of replicas as a history: holders that are late, because they were paused, write nothing
once another one has it; and a holder that is not checked is found out."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from random import Random

import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl
from server.store import changes
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.postgresql import duties
from server.util.duty import HeldDuty, acting
from tests.replicas.history import Operation, Violation, check
from tests.replicas.models import MODELS, Refused
from tests.support.postgresql import database, execute

LEASE = 50_000
"""Microseconds: much shorter than the product's, so that it often lapses between two writes."""
LATE_SECONDS = 0.15
"""How long a holder may be paused before it writes."""
REPLICAS = 3
SECONDS = 2.0


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    with database() as made:
        yield made


class Holder:
    """A replica that takes the duty when it is free, and writes in its name for as long as it
    believes it has it: until it is refused."""

    def __init__(self, name: str, opened: Database, dice: Random) -> None:
        self.operations: list[Operation] = []
        self._name = name
        self._database = opened
        self._dice = dice
        shared = opened.storage.shared
        assert shared is not None
        self._shared = shared

    async def work(self, until: float) -> None:
        while time.monotonic() < until:
            lease, now = await self._shared.aside(duties.look)
            if lease is not None and lease.until > now:
                await asyncio.sleep(self._dice.uniform(0, LEASE / 1e6))
                continue
            take = partial(duties.take, seen=lease, replica=self._name)
            invoked = time.monotonic_ns()
            epoch = await self._shared.aside(take)
            if epoch is not None:
                self._note("take", (), invoked, (epoch,))
                await self._serve(epoch, until)

    async def _serve(self, epoch: int, until: float) -> None:
        duty = HeldDuty(self._name, epoch, 1, lambda: 0)
        told: tuple[str, ...] = ("written",)
        while told == ("written",) and time.monotonic() < until:
            await asyncio.sleep(self._dice.uniform(0, LATE_SECONDS))
            if self._dice.random() < 0.5:
                renew = partial(duties.renew, replica=self._name, epoch=epoch)
                await self._shared.aside(renew)
            invoked = time.monotonic_ns()
            try:
                with acting(duty):
                    await self._database.write(partial(_append, epoch))
            except Unavailable as refusal:
                told = Refused(str(refusal.data["reason"]))
            self._note("write", (epoch,), invoked, told)

    def _note(
        self, name: str, args: tuple[int, ...], invoked: int, result: tuple[object, ...]
    ) -> None:
        returned = time.monotonic_ns()
        self.operations.append(
            Operation(self._name, "duty:background", name, args, invoked, returned, result)
        )


def _append(epoch: int, transaction: Transaction) -> None:
    changes.append(
        transaction.connection,
        at=transaction.stamp,
        origin="o",
        actor="a",
        action="duty",
        entity="duty",
        entity_id=str(epoch),
        project_id=None,
        outcome="done",
    )


def served(url: DatabaseUrl, seed: int) -> list[Operation]:
    """What all holders were told."""

    async def serve() -> list[Operation]:
        async with AsyncExitStack() as stack:
            holders = []
            for number in range(REPLICAS):
                opened = Database(url)
                await opened.open(0)
                stack.push_async_callback(opened.close)
                holders.append(Holder(f"r{number}", opened, Random(f"{seed} {number}")))
            until = time.monotonic() + SECONDS
            async with asyncio.TaskGroup() as group:
                for holder in holders:
                    group.create_task(holder.work(until))
            return [operation for holder in holders for operation in holder.operations]

    return asyncio.run(serve())


def epochs(url: DatabaseUrl) -> list[int]:
    """In whose name what is stored was written, in order."""
    rows = execute(url, "SELECT entity_id FROM changes WHERE entity = 'duty' ORDER BY seq")
    return [int(epoch) for (epoch,) in rows]


def judged(operations: list[Operation]) -> list[Violation]:
    return check(operations, MODELS)


@pytest.mark.parametrize("seed", range(2))
def test_who_has_lost_the_duty_writes_nothing(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(duties, "LEASE", LEASE)
    operations = served(url, seed)
    assert [str(violation) for violation in judged(operations)] == []
    assert epochs(url) == sorted(epochs(url))
    results = [operation.result for operation in operations]
    assert ("written",) in results
    assert Refused("duty_lost") in results, "no holder was late"


def test_a_stale_holder_that_is_not_checked_is_found(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a holder goes by its own belief, and writes after another one has the duty."""
    monkeypatch.setattr(duties, "LEASE", LEASE)
    monkeypatch.setattr(duties, "verify", lambda *_: None)
    [violation] = judged(served(url, 0))
    assert violation.refuted.name in ("write", "take")
    assert epochs(url) != sorted(epochs(url))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 110))
def test_many_seeds_of_holders(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(duties, "LEASE", LEASE)
    assert [str(violation) for violation in judged(served(url, seed))] == []
    assert epochs(url) == sorted(epochs(url))
