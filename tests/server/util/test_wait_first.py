"""Waiting for the first of several things."""

import asyncio

import anyio

from server.util.wait_first import first
from tests.support.waiting import PATIENCE


def test_it_returns_with_the_first_and_leaves_no_task_behind() -> None:
    async def run() -> int:
        never, soon = asyncio.Event(), anyio.Event()
        asyncio.get_running_loop().call_soon(soon.set)
        await asyncio.wait_for(first(never, soon, seconds=10 * PATIENCE), PATIENCE)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


def test_it_returns_when_the_time_is_over() -> None:
    async def run() -> int:
        waiting = asyncio.create_task(first(asyncio.Event(), seconds=0.01))
        await asyncio.sleep(0)
        assert not waiting.done(), "the time is not over yet"
        await asyncio.wait_for(waiting, PATIENCE)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
