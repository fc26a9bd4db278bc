"""A document that never changes while the node runs, cached as bytes."""

import asyncio
from collections.abc import Callable


class CachedDocument:
    """A document that is made at its first request, off the event loop."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._making: asyncio.Task[bytes] | None = None

    async def get(self) -> bytes:
        """The document. Raises what `make` raises; the next call then makes it again."""
        if self._making is None or (self._making.done() and self._making.exception()):
            self._making = asyncio.create_task(asyncio.to_thread(self._make))
        return await asyncio.shield(self._making)
