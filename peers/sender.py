"""One loop for each peer over this node's changes (design §7).

It reads on from the peer's cursor, coalesces changes by entity, and has one request in flight. The
cursor moves only once the peer has confirmed. No write waits for a sender.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

import structlog

from peers.backoff import delay, retry_delay
from peers.digest import Name
from peers.errors import CallError, PeerUnreachable

log = structlog.get_logger()

LINGER_SECONDS = 0.05
"""Changes within this time after the first are sent with it."""
BUSY = 5
BUSY_SECONDS = 0.25
"""The same after a delivery of more than BUSY entities: fewer, larger batches cost both sides
less."""

UNDELIVERED_SECONDS = 50e-6
"""Pause before the next look for due entities, for each undelivered one: looking through more of
them costs more."""

NAMED_MAX = 100
"""Reasons that are logged until everything was taken."""


class ChangePage(NamedTuple):
    """Entities that changed after a cursor, each with the number of its last change; the cursor
    after them; and whether there are `more`."""

    names: dict[Name, int]
    cursor: int
    more: bool


class UndeliveredEntity(NamedTuple):
    """An entity that a peer that is up has not taken; it is tried again on its own schedule."""

    seq: int
    reason: str
    tries: int = 0
    due: float = 0.0
    """Seconds, monotonic."""


Untaken = Mapping[Name, str]
"""Entities that the peer has not taken, each with why."""


class Sender:
    """Sends one peer what changes here. Everything up to `cursor` was delivered, except
    `undelivered`. Logs NAME_down and NAME_up, NAME_undelivered and NAME_delivered."""

    def __init__(
        self,
        agent_id: str,
        cursor: int,
        *,
        load: Callable[[int], Awaitable[ChangePage]],
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
        self.undelivered: Mapping[Name, UndeliveredEntity] = {}
        """Never changed in place: what keeps it on disk compares by `is`."""
        self.last_delivery_error: CallError | None = None
        """Why the last delivery failed; successful calls of other kinds don't clear it."""
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
        """The last change up to which the peer has confirmed everything; its lag counts from
        there."""
        return min([self.cursor, *(entity.seq - 1 for entity in self.undelivered.values())])

    def wake(self) -> None:
        """Try again at once: the peer has called, or an operator asks for it."""
        self.undelivered = {
            name: entity._replace(due=0) for name, entity in self.undelivered.items()
        }
        self._wake.set()

    def enqueue(self, name: Name, reason: str) -> None:
        """Deliver an entity that has not changed, because the peer lacks it."""
        self.undelivered = {
            name: UndeliveredEntity(self.cursor + 1, reason),
            **self.undelivered,
        }
        self._wake.set()

    def restore(self, undelivered: Mapping[Name, UndeliveredEntity]) -> None:
        """Set the entities that the peer had not taken before a restart."""
        self.undelivered = undelivered

    def drop(self, names: Collection[Name]) -> None:
        """Don't try entities again until they change."""
        self.undelivered = {
            name: entity for name, entity in self.undelivered.items() if name not in names
        }

    async def run(self) -> AsyncIterator[None]:
        """Yields after each look; never ends. A peer that doesn't answer is counted in `failures`,
        and does not fail the loop."""
        while True:
            next_commit = self._next_commit()
            page = await self._load(self.cursor)
            names = self._due() | page.names
            if names and not await self._deliver_page(names):
                yield
                continue
            self.cursor = page.cursor
            yield
            if not page.more:
                await self._idle(next_commit)
                await asyncio.sleep(_linger(len(page.names)))

    def _due(self) -> dict[Name, int]:
        now = time.monotonic()
        return {name: entity.seq for name, entity in self.undelivered.items() if entity.due <= now}

    async def _idle(self, next_commit: asyncio.Event) -> None:
        """Wait until there is something to do: a change, or an entity that is due again."""
        due = min((entity.due for entity in self.undelivered.values()), default=None)
        waits = [asyncio.create_task(event.wait()) for event in (next_commit, self._wake)]
        try:
            least = len(self.undelivered) * UNDELIVERED_SECONDS
            seconds = None if due is None else max(least, due - time.monotonic())
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            self._wake.clear()

    def note_contact(self) -> None:
        """Note that the peer has answered a call other than a delivery."""
        self.last_contact = time.time()
        if self.last_delivery_error is None:
            self._note_success()
        elif isinstance(self.last_delivery_error, PeerUnreachable):
            self.wake()

    def _note_success(self) -> None:
        if self.failures:
            log.info(f"{self._name}_up", peer=self.agent_id, failures=self.failures)
            self.failures, self.last_error = 0, None
            self._returned()

    def note_failure(self, error: CallError) -> None:
        """Note that the peer has not answered. Logged once until it answers again."""
        if not self.failures:
            log.warning(f"{self._name}_down", peer=self.agent_id, error=str(error))
        self.failures += 1
        self.last_error = str(error)

    async def _deliver_page(self, names: dict[Name, int]) -> bool:
        self._wake.clear()
        try:
            untaken = await self._deliver(names) or {}
        except CallError as error:
            self.retries += 1
            self.last_delivery_error = error
            self.note_failure(error)
            pause = delay(self.failures, random.random())  # noqa: S311 - no secret
            await self._pause(max(pause, error.retry_after))
            return False
        self._keep_undelivered(names, untaken)
        self.delivered += len(names) - len(untaken)
        self.retries += len(untaken)
        self.last_delivery_error = None
        self.last_contact = time.time()
        self._note_success()
        return True

    def _keep_undelivered(self, names: dict[Name, int], untaken: Untaken) -> None:
        """Keep what was not taken until its next try. Each reason is logged once, until everything
        was taken."""
        before = self.undelivered
        if not untaken and before.keys().isdisjoint(names):
            return
        undelivered = {name: entity for name, entity in before.items() if name not in names}
        among = len(undelivered) + len(untaken)
        for name, reason in untaken.items():
            tries = before[name].tries + 1 if name in before else 1
            pause = retry_delay(tries, among, random.random())  # noqa: S311 - no secret
            due = time.monotonic() + pause
            undelivered[name] = UndeliveredEntity(names[name], reason, tries, due)
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
        self.undelivered = undelivered
        if before and not undelivered:
            log.info(f"{self._name}_delivered", peer=self.agent_id, entities=len(before))
            self._named.clear()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return


def _linger(sent: int) -> float:
    """Seconds until the next look, with jitter, so that not all senders wake at one moment."""
    chance = random.random()  # noqa: S311 - no secret
    return (BUSY_SECONDS if sent > BUSY else LINGER_SECONDS) * (0.5 + chance)
