"""Waiting for the first of several things."""

import asyncio

import anyio

from server.waiting import first


def test_it_returns_with_the_first_and_leaves_no_task_behind() -> None:
    async def run() -> int:
        never, soon = asyncio.Event(), anyio.Event()
        asyncio.get_running_loop().call_soon(soon.set)
        await asyncio.wait_for(first(never, soon, seconds=60), 20)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


def test_it_returns_when_the_time_is_over() -> None:
    asyncio.run(asyncio.wait_for(first(asyncio.Event(), seconds=0.01), 20))
