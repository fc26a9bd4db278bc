"""Open pages hear of what they show, and of nothing else, however many they are."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.errors import RateLimited
from server.page import live
from server.page.live import PAUSE_MAX, PAUSE_MIN, SHARE, Interest, LivePages, pause
from server.store import changes
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Loops
from tests.support.located import location_of, prepare
from tests.support.waiting import until

CONTRACTS = Interest(frozenset({"contract"}), None, None)
OF_P1 = Interest(frozenset({"contract"}), "p1", None)


@pytest.mark.parametrize(
    ("interest", "entity", "project", "taken"),
    [
        (CONTRACTS, "contract", "p1", True),
        (CONTRACTS, "context", "p1", False),
        (CONTRACTS, "contract", None, True),
        (OF_P1, "contract", "p1", True),
        (OF_P1, "contract", "p2", False),
        (Interest(frozenset({"contract"}), None, frozenset({"p1"})), "contract", "p2", False),
        (Interest(frozenset({"contract"}), None, frozenset({"p1"})), "contract", None, False),
    ],
)
def test_a_page_takes_what_it_shows(
    interest: Interest, entity: str, project: str | None, taken: bool
) -> None:
    assert interest.takes(entity, project) is taken


@given(st.integers(1, 1000), st.floats(0, 1))
def test_pages_take_a_small_share_of_the_time_together(pages: int, seconds: float) -> None:
    waited = pause(pages, seconds)
    assert PAUSE_MIN <= waited <= PAUSE_MAX
    assert pages * seconds <= SHARE * waited + 1e-9 or waited == PAUSE_MAX


def change(entity: str, project: str | None = "p1") -> Callable[[Transaction], None]:
    def append(transaction: Transaction) -> None:
        changes.append(
            transaction.connection,
            at=transaction.stamp,
            origin="n",
            actor="a",
            action="t",
            entity=entity,
            entity_id="x",
            project_id=project,
            outcome="o",
        )

    return append


@asynccontextmanager
async def watched(
    folder: Path, most: int = 10, outside: Callable[[], object] = lambda: None
) -> AsyncIterator[tuple[Database, LivePages]]:
    prepared = prepare(folder / "n.db")
    loops = Loops()
    database = Database(location_of(folder / "n.db"), loops=loops)
    await database.open(prepared.last_stamp)
    pages = LivePages(database, loops, most, outside)
    await pages.start()
    try:
        yield database, pages
    finally:
        await pages.stop()
        await database.close()


async def heard(
    pages: LivePages, interest: Interest, after: int, log: list[int | None], agent: str = "ana"
) -> None:
    async with aclosing(pages.follow(agent, interest, after, anyio.Event())) as seqs:
        async for seq in seqs:
            log += [seq]


def test_a_page_hears_of_its_changes_only(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path) as (database, pages):
            first, second = list[int | None](), list[int | None]()
            of_p2 = Interest(frozenset({"contract"}), "p2", None)
            tasks = [
                asyncio.create_task(heard(pages, OF_P1, 0, first)),
                asyncio.create_task(heard(pages, of_p2, 0, second)),
            ]
            await until(lambda: pages.open == 2)
            await database.write(change("contract", "p1"))
            await until(lambda: first)
            await database.write(change("contract", "p2"))
            await until(lambda: second)
            assert first == [1]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert pages.open == 0

    asyncio.run(story())


def test_what_came_before_the_stream_is_told_at_once(tmp_path: Path) -> None:
    """Between the page and its stream nothing is missed, nor after a restart of the node."""

    async def story() -> None:
        async with watched(tmp_path) as (database, pages):
            await database.write(change("context"))
            await database.write(change("contract"))
            log = list[int | None]()
            task = asyncio.create_task(heard(pages, CONTRACTS, 1, log))
            await until(lambda: log)
            assert log == [2]
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(story())


def test_what_is_outside_of_the_database_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "OUTSIDE_SECONDS", 0.01)

    async def story() -> None:
        awake = ["a"]
        async with watched(tmp_path, outside=lambda: tuple(awake)) as (_, pages):
            log = list[int | None]()
            task = asyncio.create_task(heard(pages, CONTRACTS, 0, log))
            await until(lambda: pages.open)
            awake.append("b")
            await until(lambda: log)
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(story())


def test_a_stream_ends_with_the_node(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path) as (_, pages):
            stopping = anyio.Event()
            stopping.set()
            assert [seq async for seq in pages.follow("ana", CONTRACTS, 0, stopping)] == []

    asyncio.run(story())


def test_more_pages_than_the_limit_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path, most=2) as (_, pages):
            tasks = []
            for agent in ("ana", "ben"):
                pages.check_room(agent)
                tasks.append(asyncio.create_task(heard(pages, CONTRACTS, 0, [], agent)))
            await until(lambda: pages.open == 2)
            with pytest.raises(RateLimited, match="The node has 2 open pages"):
                pages.check_room("cleo")
            await _cancelled(tasks)

    asyncio.run(story())


def test_the_first_look_at_a_view_is_not_what_it_costs(tmp_path: Path) -> None:
    """It compiled the template: pages would be late for as long as that is on the average."""

    async def story() -> None:
        async with watched(tmp_path) as (_, pages):
            pages.spent("feature", 1.0)
            assert pages.cost == 0.0
            pages.spent("feature", 0.01)
            pages.spent("mail", 1.0)
            assert pages.cost == 0.01

    asyncio.run(story())


def test_one_agent_leaves_half_of_the_room_to_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path, most=4) as (_, pages):
            tasks = [asyncio.create_task(heard(pages, CONTRACTS, 0, [])) for _ in range(2)]
            await until(lambda: pages.open == 2)
            with pytest.raises(RateLimited, match="You have 2 open pages"):
                pages.check_room("ana")
            pages.check_room("ben")
            await _cancelled(tasks)

    asyncio.run(story())


def test_a_page_that_hears_of_nothing_is_asked_who_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "CHECK_SECONDS", 0.01)

    async def story() -> None:
        async with watched(tmp_path) as (_, pages):
            log = list[int | None]()
            task = asyncio.create_task(heard(pages, CONTRACTS, 0, log))
            await until(lambda: log)
            assert set(log) == {None}
            await _cancelled([task])

    asyncio.run(story())


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
