"""One loop for each peer over this node's changes (design §7).

It reads on from the peer's cursor, coalesces what it finds by entity, and has one request in
flight. The cursor moves only once the peer has confirmed. Who writes never waits for it.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

import structlog

from peers.backoff import delay, retry_delay
from peers.digest import Name
from peers.errors import CallError, Unreachable

log = structlog.get_logger()

LINGER_SECONDS = 0.05
"""What is written in this time after a change goes with it."""
BUSY = 5
BUSY_SECONDS = 0.25
"""The same after more than so many entities at once: fewer and larger batches cost both sides
less."""

HELD_SECONDS = 50e-6
"""For each entity that is held, until the next look for what is due again: a look costs the more
the more there are."""

NAMED_MAX = 100
"""Reasons that are named in the log until all has been taken."""


class Page(NamedTuple):
    """Entities that changed after a cursor, each once with the number of its last change, and the
    cursor after them."""

    names: dict[Name, int]
    cursor: int
    more: bool


class Held(NamedTuple):
    """An entity that a peer has not taken, though it answers: it is tried again by itself."""

    seq: int
    reason: str
    tries: int = 0
    due: float = 0.0
    """Seconds, monotonic."""


Untaken = Mapping[Name, str]
"""Entities that the peer has not taken, each with why."""


class Sender:
    """Tells one peer what changes here. All up to `cursor` was delivered but what is `held`; the
    log says NAME_down and NAME_up, NAME_undelivered and NAME_delivered."""

    def __init__(
        self,
        agent_id: str,
        cursor: int,
        *,
        load: Callable[[int], Awaitable[Page]],
        deliver: Callable[[dict[Name, int]], Awaitable[Untaken | None]],
        next_commit: Callable[[], asyncio.Event],
        returned: Callable[[], None],
        name: str = "peer",
    ) -> None:
        self.agent_id = agent_id
        self.cursor = cursor
        self.failures = 0
        self.retries = 0
        self.delivered = 0
        self.held: Mapping[Name, Held] = {}
        """Never changed in place: whoever keeps it on disk sees by `is` that there is news."""
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
        self._named: set[str] = set()

    @property
    def confirmed(self) -> int:
        """The last change up to which the peer has confirmed everything: who says how long it has
        waited counts from there."""
        return min([self.cursor, *(one.seq - 1 for one in self.held.values())])

    def wake(self) -> None:
        """Try again at once: the peer was heard from, or the operator asks for it."""
        self.held = {name: one._replace(due=0) for name, one in self.held.items()}
        self._wake.set()

    def owe(self, name: Name, reason: str) -> None:
        """Deliver an entity though it has not changed: the peer lacks it."""
        self.held = {name: Held(self.cursor + 1, reason), **self.held}
        self._wake.set()

    def restore(self, held: Mapping[Name, Held]) -> None:
        """Hold what the peer had not taken before a restart; each is tried once more."""
        self.held = held

    def drop(self, names: Collection[Name]) -> None:
        """Try entities no more, until they change."""
        self.held = {name: one for name, one in self.held.items() if name not in names}

    async def run(self) -> AsyncIterator[None]:
        """Yields after each look; never ends. A peer that does not answer is a look like another:
        `failures` shows it."""
        while True:
            next_commit = self._next_commit()
            page = await self._load(self.cursor)
            names = self._due() | page.names
            if names and not await self._sent(names):
                yield
                continue
            self.cursor = page.cursor
            yield
            if not page.more:
                await self._idle(next_commit)
                await asyncio.sleep(_linger(len(page.names)))

    def _due(self) -> dict[Name, int]:
        now = time.monotonic()
        return {name: one.seq for name, one in self.held.items() if one.due <= now}

    async def _idle(self, next_commit: asyncio.Event) -> None:
        """Until there is something to do: a change, or an entity that is due again."""
        due = min((one.due for one in self.held.values()), default=None)
        waits = [asyncio.create_task(one.wait()) for one in (next_commit, self._wake)]
        try:
            least = len(self.held) * HELD_SECONDS
            seconds = None if due is None else max(least, due - time.monotonic())
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            self._wake.clear()

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
            untaken = await self._deliver(names) or {}
        except CallError as error:
            self.retries += 1
            self.undelivered = error
            self.failed(error)
            pause = delay(self.failures, random.random())  # noqa: S311 - no secret
            await self._pause(max(pause, error.retry_after))
            return False
        self._hold(names, untaken)
        self.delivered += len(names) - len(untaken)
        self.retries += len(untaken)
        self.undelivered = None
        self.last_contact = time.time()
        self._succeeded()
        return True

    def _hold(self, names: dict[Name, int], untaken: Untaken) -> None:
        """Keep what was not taken until it is due again; each reason is named once, until all has
        been taken."""
        before = self.held
        if not untaken and before.keys().isdisjoint(names):
            return
        held = {name: one for name, one in before.items() if name not in names}
        among = len(held) + len(untaken)
        for name, reason in untaken.items():
            tries = before[name].tries + 1 if name in before else 1
            pause = retry_delay(tries, among, random.random())  # noqa: S311 - no secret
            due = time.monotonic() + pause
            held[name] = Held(names[name], reason, tries, due)
            if reason not in self._named and len(self._named) < NAMED_MAX:
                self._named.add(reason)
                log.warning(
                    f"{self._name}_undelivered",
                    peer=self.agent_id,
                    entity=name.entity,
                    id=name.entity_id,
                    project=name.project_id,
                    reason=reason,
                )
        self.held = held
        if before and not held:
            log.info(f"{self._name}_delivered", peer=self.agent_id, entities=len(before))
            self._named.clear()

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
