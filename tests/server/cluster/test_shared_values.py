"""Values that are kept for a while: alike in memory and in the table of replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from server.cluster import shared_values
from server.cluster.shared_values import SharedValues
from server.store.database import Database
from tests.server.cluster.shared import DatabaseOfTest, Server
from tests.support.postgresql import database

Play = Callable[[Callable[[str], SharedValues]], Awaitable[None]]
Run = Callable[[Play], None]


@pytest.fixture(params=["memory", "table"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Plays with values that are all on one database."""
    if request.param == "memory":
        alone = DatabaseOfTest(Server(), "a")
        alone.shared = None
        kinds: dict[str, SharedValues] = {}

        def of(kind: str) -> SharedValues:
            return kinds.setdefault(kind, SharedValues(alone.as_database(), kind))

        yield lambda play: asyncio.run(_played(play(of)))
        return
    with database() as url:

        async def on_replicas(play: Play) -> None:
            stores = [Database(url) for _ in range(2)]
            for store in stores:
                await store.open(0)
            turn = iter(stores * 50)
            try:
                await play(lambda kind: SharedValues(next(turn), kind))
            finally:
                for store in stores:
                    await store.close()

        yield lambda play: asyncio.run(on_replicas(play))


async def _played(play: Awaitable[None]) -> None:
    await play


def test_a_value_is_found_by_its_kind_and_name(run: Run) -> None:
    async def play(of: Callable[[str], SharedValues]) -> None:
        await of("grant").put("x", "anna", 60)
        assert await of("grant").find("x") == "anna"
        assert await of("hello").find("x") is None
        await of("grant").put("x", "berta", -1)
        assert await of("grant").find("x") is None

    run(play)


def test_a_value_is_taken_once(run: Run) -> None:
    async def play(of: Callable[[str], SharedValues]) -> None:
        await of("hello").put("x", "h", 60)
        await of("hello").put("old", "h", -1)
        assert await of("hello").count() == 1
        assert await of("hello").take("x") == "h"
        assert await of("hello").take("x") is None
        assert await of("hello").take("old") is None
        assert await of("hello").count() == 0

    run(play)


def test_a_new_value_changes_no_other(run: Run) -> None:
    async def play(of: Callable[[str], SharedValues]) -> None:
        assert await of("nudge").put_new("x", "1", 60) is None
        before = await of("nudge").put_new("x", "2", 60)
        assert before is not None
        assert before[0] == "1"
        assert 50 < before[1] <= 60
        assert await of("nudge").find("x") == "1"

    run(play)


def test_memory_keeps_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_values, "KEPT_MAX", 2)
    alone = DatabaseOfTest(Server(), "a")
    alone.shared = None
    values = SharedValues(alone.as_database(), "grant")

    async def play() -> None:
        for name in "abc":
            await values.put(name, name, 60)
        assert [await values.find(name) for name in "abc"] == [None, "b", "c"]

    asyncio.run(play())
