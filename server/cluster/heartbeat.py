"""Each replica tells every second that it runs, with what the others need to know of it."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson
import structlog

from server.domain.errors import Unavailable
from server.store.database import Database
from server.store.postgresql import replicas, request_rates, shared_values
from server.store.postgresql.replicas import Announced, Replica
from server.store.storage import Shared
from server.util.loops import Loops, Turns
from server.util.service import Service

log = structlog.get_logger()

BEAT_SECONDS = 1.0
SWEEP_BEATS = 30
"""After how many beats a replica forgets what is over."""
STOP_SECONDS = 3.0
"""How long a stop tries to tell of itself."""

Tell = Callable[[], Mapping[str, Any]]
"""What this replica tells of one topic, as JSON."""
Hear = Callable[[Mapping[str, Any]], None]
"""Takes what another replica tells of the same topic."""


class ReplicaTopic(NamedTuple):
    """Something that replicas tell each other of."""

    name: str
    tell: Tell
    hear: Hear


class Heartbeat(Service):
    """Renews this replica's row, and hears what the rows of the others tell.

    `status` returns how this replica is: healthy, degraded or unhealthy.
    """

    def __init__(
        self,
        database: Database,
        loops: Loops,
        address: str,
        version: str,
        status: Callable[[], str],
        topics: Sequence[ReplicaTopic],
    ) -> None:
        super().__init__(loops)
        self._database = database
        self._shared: Shared | None = database.storage.shared
        self._address = address
        self._version = version
        self._status = status
        self._topics = topics
        self._beats = 0
        self.replicas: list[Replica] = []
        """All that are known, with this one, as of the last beat."""
        self.at = 0
        """The time of the last beat, by the database server."""

    @property
    def own(self) -> str | None:
        """This replica; None for a process that has its database alone."""
        return self._shared.replica if self._shared is not None else None

    def running(self) -> list[Replica]:
        """The replicas that were heard of lately."""
        return [replica for replica in self.replicas if not replica.is_away(self.at)]

    async def start(self) -> None:
        if self._shared is None:
            return
        with suppress(Unavailable):
            # The loop tries again.
            await self._beat(self._shared)
        self.run("heartbeat", self._beat_on)

    async def stop(self) -> None:
        await super().stop()
        shared = self._shared
        if shared is not None:
            with suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await shared.aside(lambda db: replicas.leave(db, shared.replica))

    async def _beat_on(self) -> Turns:
        shared = self._shared
        assert shared is not None
        while True:
            problem: Exception | None = None
            try:
                await self._beat(shared)
            except Unavailable as error:
                problem = error
            yield problem
            await asyncio.sleep(BEAT_SECONDS)

    async def _beat(self, shared: Shared) -> None:
        report = {topic.name: topic.tell() for topic in self._topics}
        own = Announced(
            shared.replica,
            self._address,
            self._version,
            shared.migration,
            self._status(),
            orjson.dumps(report).decode(),
        )
        self.replicas, self.at = await shared.aside(lambda db: replicas.beat(db, own))
        for replica in self.running():
            if replica.replica != shared.replica:
                self._hear(orjson.loads(replica.report))
        self._beats += 1
        if self._beats % SWEEP_BEATS == 0:
            await shared.aside(request_rates.forget_idle)
            await shared.aside(shared_values.forget_old)

    def _hear(self, report: Mapping[str, Any]) -> None:
        for topic in self._topics:
            # A replica of another release may tell of other topics.
            if topic.name in report:
                topic.hear(report[topic.name])


def own_address(host: str, port: int) -> str:
    """Where this replica listens, for people: by the machine's name where it listens on all its
    addresses."""
    everywhere = host in ("", "0.0.0.0", "::")  # noqa: S104 - compared, not listened on
    return f"{socket.gethostname() if everywhere else host}:{port}"
