"""Documents that never change while a node runs: made once, off the event loop, kept as bytes."""

import asyncio
from collections.abc import Callable


class Document:
    """A document that is made when it is first asked for, by whoever asks first."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._making: asyncio.Task[bytes] | None = None

    async def get(self) -> bytes:
        """The document. Raises what `make` raises, and then makes it anew for the next."""
        if self._making is None or (self._making.done() and self._making.exception()):
            self._making = asyncio.create_task(asyncio.to_thread(self._make))
        return await asyncio.shield(self._making)
