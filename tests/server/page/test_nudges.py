"""Nobody is nudged twice at once about the same thing."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from server.cluster.shared_values import SharedValues
from server.domain.errors import RateLimited
from server.page.nudges import NUDGE_SECONDS, Nudges
from tests.server.cluster.shared import DatabaseOfTest, Server


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0


def played(story: Callable[[Nudges, Clock], Awaitable[None]]) -> None:
    clock, database = Clock(), DatabaseOfTest(Server(), "a")
    database.shared = None
    values = SharedValues(database.as_database(), "nudge", lambda: clock.seconds)

    async def play() -> None:
        await story(Nudges(values), clock)

    asyncio.run(play())


def test_a_second_nudge_waits() -> None:
    async def story(nudges: Nudges, clock: Clock) -> None:
        await nudges.note("ann", "item", "a")
        clock.seconds += NUDGE_SECONDS - 1
        with pytest.raises(RateLimited, match=r"ann was nudged about this 9 min ago") as refusal:
            await nudges.note("ann", "item", "b")
        assert refusal.value.data["retryAfter"] == 2
        clock.seconds += 1
        await nudges.note("ann", "item", "c")

    played(story)


def test_another_agent_or_item_is_nudged_and_a_double_click_is_one() -> None:
    async def story(nudges: Nudges, clock: Clock) -> None:
        await nudges.note("ann", "item", "a")
        await nudges.note("ann", "item", "a")
        await nudges.note("ann", "other", "b")
        await nudges.note("ben", "item", "")
        with pytest.raises(RateLimited):
            await nudges.note("ben", "item", "")

    played(story)


def test_a_refused_nudge_does_not_count() -> None:
    async def story(nudges: Nudges, clock: Clock) -> None:
        await nudges.note("ann", "item", "a")
        await nudges.forget("ann", "item")
        await nudges.note("ann", "item", "b")

    played(story)
