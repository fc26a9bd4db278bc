"""Runs what only one replica may run, while this one has the duty (`server.domain.duty`).

A process that has its database alone always has it, without a lease.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import structlog

from server.domain import duty
from server.domain.duty import Lease
from server.domain.errors import Unavailable
from server.store.database import Database
from server.store.postgresql import duties
from server.store.storage import Shared
from server.util.duty import HeldDuty, acting
from server.util.loops import Loops, Turns, cancel
from server.util.service import Service

log = structlog.get_logger()

LOOK_SECONDS = 0.5
"""How often a replica without the duty looks whether it is free."""
RENEW_SECONDS = duty.RENEW / duty.SECOND
STOP_SECONDS = 3.0
"""How long a stop tries to give the duty back."""


class DutyHolder(NamedTuple):
    """Who has the duty, as this replica last saw it. `since` is by the steady clock."""

    replica: str | None
    epoch: int
    since: int


class BackgroundDuty(Service):
    """Starts `services` when the duty is gained, and stops them when it is lost.

    All that they write carries the duty's epoch, and all that they send is checked against the
    lease (`server.util.duty`). So a replica that was paused does nothing any more before it has
    noticed that another one has the duty.
    """

    def __init__(self, database: Database, loops: Loops, services: Sequence[Service]) -> None:
        super().__init__(loops)
        self._shared: Shared | None = database.storage.shared
        self._steady = database.clock.steady
        self._services = services
        self._started: list[Service] = []
        self._duty: HeldDuty | None = None
        self._changing = asyncio.Lock()
        """A lease may lapse while a turn finds that it is lost: services are stopped once."""
        self._seen: Lease | None = None
        self._seen_at = self._steady()
        self.holder = DutyHolder(None, 0, self._steady())
        self.gained = 0
        """How often this replica has gained it."""

    @property
    def is_held(self) -> bool:
        """Whether this process does the background work."""
        return self._shared is None or (self._duty is not None and self._duty.is_held)

    def vacant_for(self) -> float:
        """For how many seconds nobody has had the duty; 0 while somebody has it."""
        if self._shared is None or self.holder.replica is not None:
            return 0.0
        return (self._steady() - self.holder.since) / duty.SECOND

    async def start(self) -> None:
        if self._shared is None:
            await self._begin(None)
            return
        with suppress(Unavailable):
            # The first of the replicas works from its start on; the loop tries again.
            await self._turn(self._shared)
        self.run("background_duty", self._keep)

    async def stop(self) -> None:
        """Stop the services, and give the duty back, so that another replica takes it at once."""
        await super().stop()
        held = self._duty
        await self._end()
        if held is not None and self._shared is not None:
            with suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self._shared.aside(
                        lambda db: duties.release(db, held.replica, held.epoch)
                    )

    async def close(self) -> None:
        for service in self._services:
            await service.close()

    async def _keep(self) -> Turns:
        shared = self._shared
        assert shared is not None
        while True:
            problem: Exception | None = None
            turn = asyncio.create_task(self._turn(shared))
            try:
                # An answer that does not come must not keep the services running.
                await asyncio.wait({turn}, timeout=self._left())
                held = self._duty
                if held is not None and not held.is_held:
                    await self._lose(held, "it was not renewed in time")
                await turn
            except Unavailable as error:
                problem = error
            finally:
                await cancel([turn])
            yield problem
            await asyncio.sleep(LOOK_SECONDS if problem or self._duty is None else RENEW_SECONDS)

    def _left(self) -> float | None:
        """The seconds until the lease ends; None without one."""
        if self._duty is None:
            return None
        return max(0.0, (self._duty.until - self._steady()) / duty.SECOND)

    async def _turn(self, shared: Shared) -> None:
        """Look at the lease, and renew it, take it, or leave it to its holder."""
        lease, now = await shared.aside(duties.look)
        self._note(lease, now)
        epoch = self._duty.epoch if self._duty is not None else None
        sent = self._steady()
        unchanged = sent - self._seen_at
        todo = duty.step(lease, shared.replica, epoch=epoch, now=now, unchanged=unchanged)
        if todo == "renew" and self._duty is not None:
            held = self._duty
            if await shared.aside(lambda db: duties.renew(db, held.replica, held.epoch)):
                held.until = duty.end_of(sent)
            else:
                await self._lose(held, "its lease has lapsed")
        elif todo == "take":
            taken = await shared.aside(lambda db: duties.take(db, lease, shared.replica))
            if taken is not None:
                await self._gain(shared.replica, taken, sent)
        elif self._duty is not None:
            await self._lose(self._duty, "another replica has it")

    def _note(self, lease: Lease | None, now: int) -> None:
        if lease != self._seen:
            self._seen, self._seen_at = lease, self._steady()
        holder = lease.holder if lease is not None and now < lease.until else None
        if holder != self.holder.replica:
            epoch = lease.epoch if lease is not None else 0
            self.holder = DutyHolder(holder, epoch, self._steady())

    async def _gain(self, replica: str, epoch: int, sent: int) -> None:
        async with self._changing:
            await self._end()
            self._duty = HeldDuty(replica, epoch, duty.end_of(sent), self._steady)
            self.holder = DutyHolder(replica, epoch, self._steady())
            self.gained += 1
            log.info("background_duty_gained", epoch=epoch)
            await self._begin(self._duty)

    async def _lose(self, held: HeldDuty, why: str) -> None:
        """End the work of a duty, unless that was done while this waited for its turn."""
        async with self._changing:
            if self._duty is held:
                log.warning("background_duty_lost", why=why)
                await self._end()

    async def _begin(self, held: HeldDuty | None) -> None:
        """Start the services. When one fails, those that have started end; the next turn finds a
        lease without its epoch, and takes it anew."""
        try:
            with acting(held):
                for service in self._services:
                    await service.start()
                    self._started.append(service)
        except BaseException:
            await self._end()
            raise

    async def _end(self) -> None:
        """Stop what was started, in reverse order, whatever one raises."""
        problems: list[Exception] = []
        with acting(self._duty):
            while self._started:
                try:
                    await self._started[-1].stop()
                except Exception as error:
                    problems.append(error)
                # A stop that is cancelled is done again by the next `_end`.
                self._started.pop()
        self._duty = None
        if problems:
            raise problems[0]
