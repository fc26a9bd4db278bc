"""Tasks act in the name of the duty that they were started within, and of no other."""

import asyncio

import pytest

from server.domain.errors import Unavailable
from server.util.duty import HeldDuty, acting, acting_for, check_duty
from server.util.loops import storage_is_away


def held(until: int, now: int = 0) -> HeldDuty:
    return HeldDuty("r1", 3, until, lambda: now)


def test_a_task_keeps_the_duty_that_it_was_started_within() -> None:
    duty, seen = held(10), list[HeldDuty | None]()

    async def work(go: asyncio.Event) -> None:
        await go.wait()
        seen.append(acting_for())
        await asyncio.create_task(inner())

    async def inner() -> None:
        seen.append(acting_for())

    async def play() -> None:
        go = asyncio.Event()
        with acting(duty):
            task = asyncio.create_task(work(go))
        assert acting_for() is None
        go.set()
        await task

    asyncio.run(play())
    assert seen == [duty, duty]


def test_a_lapsed_duty_stops_what_acts_in_its_name_and_nothing_else() -> None:
    check_duty()
    with acting(held(10, now=9)):
        check_duty()
    with acting(held(10, now=10)):
        with pytest.raises(Unavailable) as lost:
            check_duty()
        with acting(None):
            check_duty()
    assert lost.value.data["reason"] == "duty_lost"
    # The loop waits, as with a database that is away: each item would fail.
    assert storage_is_away(lost.value)
