"""One loop for each peer over this node's changes (design §6, Senders).

It reads on from the peer's cursor, coalesces what it finds by entity, and has one request in
flight. The cursor moves only once the peer has confirmed. Who writes never waits for it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from peers.backoff import delay
from peers.client import CallError, Unreachable
from peers.digest import Name

log = structlog.get_logger()

LINGER_SECONDS = 0.05
"""What is written in this time after a change goes with it."""
BUSY = 5
BUSY_SECONDS = 0.25
"""The same after more than so many entities at once: fewer and larger batches cost both sides
less."""


class Page(NamedTuple):
    """Entities that changed after a cursor, each once with the number of its last change, and the
    cursor after them."""

    names: dict[Name, int]
    cursor: int
    more: bool


class Sender:
    """Tells one peer what changes here. `cursor` is the last change that it has confirmed; the log
    says NAME_down and NAME_up."""

    def __init__(
        self,
        agent_id: str,
        cursor: int,
        *,
        load: Callable[[int], Awaitable[Page]],
        deliver: Callable[[dict[Name, int]], Awaitable[None]],
        next_commit: Callable[[], asyncio.Event],
        returned: Callable[[], None],
        name: str = "peer",
    ) -> None:
        self.agent_id = agent_id
        self.cursor = cursor
        self.failures = 0
        self.retries = 0
        self.delivered = 0
        self.undelivered: CallError | None = None
        """Why the last delivery failed: that the peer answers other calls doesn't mend it."""
        self.last_error: str | None = None
        self.last_contact: float | None = None
        """Seconds since 1970."""
        self._load = load
        self._deliver = deliver
        self._next_commit = next_commit
        self._returned = returned
        self._name = name
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Try again at once: the peer was heard from, or the operator asks for it."""
        self._wake.set()

    async def run(self) -> None:
        """Never returns; cancel it."""
        while True:
            next_commit = self._next_commit()
            page = await self._load(self.cursor)
            if page.names and not await self._sent(page.names):
                continue
            self.cursor = page.cursor
            if not page.more:
                await next_commit.wait()
                await asyncio.sleep(_linger(len(page.names)))

    def heard(self) -> None:
        """The peer has answered a call that was no delivery."""
        self.last_contact = time.time()
        if self.undelivered is None:
            self._succeeded()
        elif isinstance(self.undelivered, Unreachable):
            self.wake()

    def _succeeded(self) -> None:
        if self.failures:
            log.info(f"{self._name}_up", peer=self.agent_id, failures=self.failures)
            self.failures, self.last_error = 0, None
            self._returned()

    def failed(self, error: CallError) -> None:
        """The peer has not. Logged once until it answers again."""
        if not self.failures:
            log.warning(f"{self._name}_down", peer=self.agent_id, error=str(error))
        self.failures += 1
        self.last_error = str(error)

    async def _sent(self, names: dict[Name, int]) -> bool:
        self._wake.clear()
        try:
            await self._deliver(names)
        except CallError as error:
            self.retries += 1
            self.undelivered = error
            self.failed(error)
            await self._pause(delay(self.failures, random.random()))  # noqa: S311 - no secret
            return False
        self.delivered += len(names)
        self.undelivered = None
        self.last_contact = time.time()
        self._succeeded()
        return True

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return


def _linger(sent: int) -> float:
    """Seconds until the next look; with jitter, so that not all peers are told at one moment."""
    chance = random.random()  # noqa: S311 - no secret
    return (BUSY_SECONDS if sent > BUSY else LINGER_SECONDS) * (0.5 + chance)
