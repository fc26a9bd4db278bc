"""What happens to replicas and to their database while clients work, as a seed says."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random

import psycopg

from cli.local_postgresql import LocalPostgresql
from tests.replicas.cluster import Cluster, Replica

ALL = ("kill", "pause", "cut", "skew", "crash")
"""`crash`: kill -9 of the database server; it needs a server that is the test's own."""
PAUSED_SECONDS = (0.1, 1.5)
SKEW_SECONDS = 3_600


class Nemesis:
    """One fault after the other; while a replica is killed or paused, the others work."""

    def __init__(
        self,
        cluster: Cluster,
        dice: Random,
        faults: Sequence[str],
        server: LocalPostgresql | None = None,
        paused_seconds: tuple[float, float] = PAUSED_SECONDS,
    ) -> None:
        self.log: list[tuple[int, str]] = []
        """What was done, and when, in ns of the clock of the histories."""
        self._cluster = cluster
        self._dice = dice
        self._faults = faults
        self._server = server
        self._paused_seconds = paused_seconds

    async def rage(self, seconds: float) -> None:
        """Do this for so long. At the end all replicas and the database run, and no clock is
        wrong."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.sleep(self._dice.uniform(0.02, 0.4))
            if self._faults:
                await self._do(self._dice.choice(self._faults))
        for replica in self._cluster.replicas:
            replica.set_clock(0)

    async def happen(self, event: Callable[[], None]) -> None:
        """Do what a test wants to happen once."""
        self._note(event.__name__)
        await asyncio.to_thread(event)

    async def _do(self, fault: str) -> None:
        replica = self._dice.choice(self._cluster.replicas)
        steps: dict[str, Callable[[Replica], Awaitable[None]]] = {
            "kill": self._kill,
            "pause": self._pause,
            "cut": self._cut,
            "skew": self._skew,
            "crash": self._crash,
        }
        await steps[fault](replica)

    def _note(self, what: str, replica: Replica | None = None) -> None:
        where = "" if replica is None else f" replica {replica.port}"
        self.log.append((time.monotonic_ns(), what + where))

    async def _kill(self, replica: Replica) -> None:
        self._note("kill -9", replica)
        await asyncio.to_thread(replica.kill)
        await asyncio.sleep(self._dice.uniform(0, 0.5))
        await asyncio.to_thread(replica.start)
        self._note("started", replica)

    async def _pause(self, replica: Replica) -> None:
        self._note("SIGSTOP", replica)
        replica.pause()
        await asyncio.sleep(self._dice.uniform(*self._paused_seconds))
        replica.wake()
        self._note("SIGCONT", replica)

    async def _cut(self, _: Replica) -> None:
        with suppress(psycopg.OperationalError):
            count = await asyncio.to_thread(self._cluster.cut, self._dice.randint(1, 6))
            self._note(f"ended {count} connections to the database")

    async def _skew(self, replica: Replica) -> None:
        ahead = self._dice.randint(-SKEW_SECONDS, SKEW_SECONDS)
        self._note(f"clock {ahead:+} s", replica)
        replica.set_clock(ahead)

    async def _crash(self, _: Replica) -> None:
        server = self._server
        assert server is not None, "only a server of its own is killed"
        self._note("kill -9 of the database")
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(self._dice.uniform(0, 0.3))
        await asyncio.to_thread(server.start)
        self._note("the database started")
