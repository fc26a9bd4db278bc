"""The background services of a node, from its start to its stop."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from server.util.loops import Loop, Loops, cancel


class Service:
    """Runs loops from `start` to `stop`. What fails in them is logged, counted and retried
    (`Loops`).

    A subclass overrides `start` to begin its loops, and `close` to close what they used. It may be
    started again after `stop`, until `close`.
    """

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start the loops. Calls may arrive as soon as the last service has started."""

    async def stop(self) -> None:
        """Cancel the loops, and return once they have ended."""
        await cancel(self._running)
        self._running.clear()

    async def close(self) -> None:
        """Close what the loops used, after the last `stop`."""

    def run(self, name: str, loop: Loop, *, ends: bool = False) -> None:
        """Run a loop until `stop` or, if it `ends`, until it returns. `name` is public."""
        self._running.append(self._loops.start(name, loop, ends=ends))


@asynccontextmanager
async def running(services: Iterable[Service]) -> AsyncIterator[None]:
    """Start services in order; stop and close those that started in reverse order, whatever one
    raises."""
    async with AsyncExitStack() as started:
        for service in services:
            started.push_async_callback(service.close)
            await service.start()
            started.push_async_callback(service.stop)
        yield
