"""A run: clients, readers and a nemesis at replicas, by one seed; then the judgement."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from cli.local_postgresql import LocalPostgresql
from server.domain.activity import KINDS
from tests.replicas.account import Balance, ChangeRow, balance, check_changes, check_stream
from tests.replicas.calls import Client, Record
from tests.replicas.cluster import Cluster
from tests.replicas.history import Violation, check
from tests.replicas.models import MODELS
from tests.replicas.nemesis import Nemesis
from tests.replicas.readers import Reader
from tests.replicas.workload import BOXES, Worker, World
from tests.support.node import NO_TLS
from tests.support.waiting import PATIENCE

CLIENTS = 6
READERS = 2
SETTLE_SECONDS = 60.0
"""How long the calls of before may take once all replicas run again."""
STEPS_OF_HANDOFFS = ("propose", "accept", "reject", "activate")


@dataclass
class Judgement:
    """What a run showed."""

    seed: int
    violations: list[Violation]
    streams: list[str]
    writes: Balance
    faults: list[str]
    record: Record
    nemesis: list[tuple[int, str]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not (self.violations or self.streams or self.faults) and self.writes.is_even

    def __str__(self) -> str:
        """The seed, and the shortest window of each violation with what the nemesis did in it."""
        lines = [f"seed {self.seed}: {self.figures}"]
        for violation in self.violations:
            lines += [str(violation), "meanwhile:"]
            begin = min(one.invoked for one in violation.window)
            end = max(one.returned or one.invoked for one in violation.window)
            lines += [
                f"  [{at / 1e6:10.1f}] {what}" for at, what in self.nemesis if begin <= at <= end
            ]
        lines += self.streams[:10] + self.faults[:10]
        lines += [f"acknowledged and lost: {self.writes.lost}"] if self.writes.lost else []
        lines += [f"doubled: {self.writes.doubled}"] if self.writes.doubled else []
        lines += [f"not asked for: {self.writes.unasked}"] if self.writes.unasked else []
        return "\n".join(lines)

    @property
    def figures(self) -> str:
        unknown = sum(each.returned is None for each in self.record.operations)
        return (
            f"{len(self.record.operations)} calls, {unknown} without an answer, "
            f"{len(self.record.acknowledged)} writes acknowledged, {len(self.nemesis)} faults, "
            f"refused for {self.record.reasons or 'nothing'}"
        )


@dataclass(frozen=True)
class Plan:
    """How a run goes."""

    seconds: float = 3.0
    faults: Sequence[str] = ()
    clients: int = CLIENTS
    projects: int = 1
    server: LocalPostgresql | None = None
    paused_seconds: tuple[float, float] = (0.1, 1.5)
    kinds: Sequence[str] = ("contract", "task", "mail")
    """What clients do."""
    event: Callable[[], None] | None = None
    """What happens in the middle, besides the faults."""


def run(seed: int, cluster: Cluster, plan: Plan) -> Judgement:
    """Run clients and judge what they and the readers were told."""
    return asyncio.run(_Run(seed, cluster, plan).judged())


class _Run:
    def __init__(self, seed: int, cluster: Cluster, plan: Plan) -> None:
        self._seed = seed
        self._cluster = cluster
        self._plan = plan
        self._dice = Random(seed)
        self._record = Record()
        self._stopping = False

    async def judged(self) -> Judgement:
        plan, cluster = self._plan, self._cluster
        world = await asyncio.to_thread(cluster.world, plan.projects)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=40)
        async with httpx.AsyncClient(
            limits=limits, trust_env=False, verify=NO_TLS, timeout=PATIENCE
        ) as http:
            self._http = http
            workers = [self._worker(f"client{n}", world) for n in range(plan.clients)]
            readers = [
                Reader(f"reader{n}", Random(self._dice.random()), cluster.urls, http)
                for n in range(READERS)
            ]
            nemesis = Nemesis(
                cluster,
                Random(self._dice.random()),
                plan.faults,
                plan.server,
                plan.paused_seconds,
            )
            reading = [asyncio.create_task(reader.read()) for reader in readers]
            try:
                async with asyncio.TaskGroup() as group:
                    for worker in workers:
                        group.create_task(self._work(worker))
                    if plan.event is not None:
                        await nemesis.rage(plan.seconds / 2)
                        await nemesis.happen(plan.event)
                    await nemesis.rage(plan.seconds / (1 if plan.event is None else 2))
                    self._stopping = True
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._read_all(world)
                balanced = await self._balance(world)
                table = await asyncio.to_thread(cluster.changes)
                await self._read_to_end(readers, table)
            finally:
                for reader in readers:
                    reader.stopping = True
                await asyncio.gather(*reading)
        streams = check_changes(table)
        shown = [change for change in table if change.entity in KINDS]
        for reader in readers:
            streams += [f"{reader.name}: {what}" for what in check_stream(reader.events, shown)]
        violations = check(self._record.operations, MODELS)
        return Judgement(
            self._seed,
            violations,
            streams,
            balanced,
            self._record.faults + self._tracebacks(),
            self._record,
            nemesis.log,
        )

    def _worker(self, name: str, world: World, urls: Sequence[str] | None = None) -> Worker:
        client = Client(
            name,
            Random(self._dice.random()),
            urls or self._cluster.urls,
            self._record,
            self._http,
        )
        return Worker(client, world, self._plan.kinds)

    async def _work(self, worker: Worker) -> None:
        while not self._stopping:
            await worker.step()

    async def _read_all(self, world: World) -> None:
        """Read each object at each replica, as a last part of the history."""
        for number, url in enumerate(self._cluster.urls):
            last = self._worker(f"last{number}", world, [url])
            for name in world.contracts:
                await last.get(name, persists=True)
            for handoff in world.handoffs:
                await last.handoff(handoff, "get", persists=True)
            for box in BOXES:
                await last.list(box, persists=True)

    # --- what is there at the end -----------------------------------------------------------------

    async def _balance(self, world: World) -> Balance:
        stored: list[str] = []
        first = self._cluster.replicas[0]
        for project, contract in world.contracts.values():
            result = await self._ask(
                first.url,
                "cacp/contract/get",
                next(iter(world.keys.values())),
                projectId=project,
                contractId=contract,
                includeHistory=True,
            )
            if result is not None:
                contents = [*(one["content"] for one in result["history"]), result["content"]]
                stored += [content["name"] for content in contents]
        for box in BOXES:
            result = await self._ask(first.url, "acp/inbox", world.keys[box], show="all", limit=500)
            assert not result["more"], "more messages than the inbox lists at once"
            stored += [f"{box}:{one['payload']['summary']}" for one in result["messages"]]
        for change in self._cluster.changes():
            if change.entity == "handoff" and change.outcome in STEPS_OF_HANDOFFS:
                stored.append(f"{change.entity_id}:{change.outcome}")
        return balance(self._record.acknowledged, self._record.possible, stored)

    async def _ask(self, url: str, method: str, key: str, **params: Any) -> Any:
        """The result; None where there is no such thing."""
        response = await self._http.post(
            url,
            json={"jsonrpc": "2.0", "method": method, "params": params, "id": 1},
            headers={"authorization": f"Bearer {key}"},
        )
        answer = response.json()
        if answer.get("error", {}).get("data", {}).get("reason") == "not_found":
            return None
        return answer["result"]

    async def _read_to_end(self, readers: Sequence[Reader], table: Sequence[ChangeRow]) -> None:
        newest = max((change.seq for change in table if change.entity in KINDS), default=0)
        until = time.monotonic() + SETTLE_SECONDS
        while any(reader.last < newest for reader in readers) and time.monotonic() < until:
            await asyncio.sleep(0.02)
        for reader in readers:
            if reader.last < newest:
                self._record.faults.append(f"{reader.name} ends at {reader.last}, of {newest}")

    def _tracebacks(self) -> list[str]:
        found = []
        for replica in self._cluster.replicas:
            log = replica.log
            place = log.find("Traceback")
            if place >= 0:
                found.append(f"replica {replica.port} logged:\n{log[max(0, place - 500) :][:4000]}")
        return found
