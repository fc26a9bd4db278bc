"""Replicas on PostgreSQL: writes of one replica compared with a node on SQLite, writes of three
with those of one, and the time until an inbox that waits at one gets what another is sent."""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import load, mail
from bench.capacity import Costs
from bench.fill import REPOS, proposal
from bench.load import Measured
from bench.node import NodeProcess, node
from cli.local_postgresql import LocalPostgresql

CONNECTIONS = 64
REPLICAS = 3


class Sides(NamedTuple):
    """What was measured in one run each, in turn: rates of calls."""

    sqlite: list[Measured]
    one: list[Measured]
    three: list[Measured]


@contextmanager
def database() -> Iterator[LocalPostgresql]:
    """A server that syncs each commit to the disk."""
    with tempfile.TemporaryDirectory(prefix="cacp-bench-postgresql-") as name:
        folder = Path(name)
        # The account that runs it where root measures must reach its data.
        folder.chmod(0o711)
        with LocalPostgresql(folder, settings={"synchronous_commit": "on"}) as server:
            yield server


@contextmanager
def replicas(
    folder: Path, server: LocalPostgresql, name: str, count: int
) -> Iterator[list[NodeProcess]]:
    """So many replicas on a new database."""
    settings = {"CACP_DATABASE_URL": str(server.create_database(name))}
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                node(folder / f"{name}-{number}.db", settings=settings, program=mail.UNLIMITED)
            )
            for number in range(count)
        ]


def writes(folder: Path, server: LocalPostgresql, rounds: int, seconds: float) -> dict[str, Sides]:
    """contract/propose and acp/send on SQLite, on one replica and on three, in turn."""
    measured = {name: Sides([], [], []) for name in ("contract/propose", "acp/send")}
    with ExitStack() as stack:
        alone = stack.enter_context(node(folder / "beside.db", program=mail.UNLIMITED))
        single = stack.enter_context(replicas(folder, server, "single", 1))
        several = stack.enter_context(replicas(folder, server, "several", REPLICAS))
        sides = ([alone], single, several)
        projects = [_project(running[0]) for running in sides]
        for number in range(rounds):
            for name, sets in measured.items():
                turn = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
                for side in turn:
                    body = _body(name, projects[side])
                    sets[side].append(at_once(sides[side], body, seconds, folder))
    return measured


def at_once(servers: Sequence[NodeProcess], body: str, seconds: float, folder: Path) -> Measured:
    """One load on all servers together, over 64 connections in all."""
    each = CONNECTIONS // len(servers)
    runs: list[Measured] = []

    def run(number: int, server: NodeProcess) -> None:
        place = folder / f"load-{number}"
        place.mkdir(exist_ok=True)
        runs.append(load.post(server.port, body, seconds, place, each))

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Measured(
        rate=sum(run.rate for run in runs),
        median=statistics.median(run.median for run in runs),
        p99=max(run.p99 for run in runs),
        failed=sum(run.failed for run in runs),
    )


def unit_costs(folder: Path, server: LocalPostgresql, seconds: float) -> dict[str, Costs]:
    """What a call costs the replica and the database server (Linux)."""
    costs = {}
    with replicas(folder, server, "costs", 1) as (running,):
        project = _project(running)
        made = running.call("cacp/contract/propose", proposal(project))["contractId"]
        get = {"projectId": project, "contractId": made}
        bodies = {name: _body(name, project) for name in ("contract/propose", "acp/send")}
        bodies["contract/get"] = load.request("cacp/contract/get", get)
        for name, body in bodies.items():
            at_once([running], body, 1, folder)
            before = _so_far(running, server)
            started = time.monotonic()
            run = at_once([running], body, seconds, folder)
            calls = run.rate * (time.monotonic() - started)
            after = _so_far(running, server)
            costs[name] = Costs(
                *((last - first) / calls * 1e6 for first, last in zip(before, after, strict=True))
            )
    return costs


def wake_seconds(folder: Path, server: LocalPostgresql) -> list[float]:
    """Seconds from the start of a send at one replica to the answer of an inbox at another."""
    with replicas(folder, server, "wake", 2) as (waits, sends):
        return mail.pings(waits, sends)


def _so_far(running: NodeProcess, server: LocalPostgresql) -> tuple[float, float, float]:
    """Seconds so far, in the order of `Costs`."""
    held = running.metric("cacp_write_lock_seconds_total")
    return running.processor_seconds(), _server_seconds(server), held


def _server_seconds(server: LocalPostgresql) -> float:
    """Processor time of all of the server's processes so far, also of those that have ended."""
    assert server.pid is not None
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(stat.parent.name) == server.pid:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == server.pid:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def _project(running: NodeProcess) -> str:
    made = running.call(
        "cacp/project/create", {"name": "Bench", "objective": "Speed", "repos": REPOS}
    )
    return str(made["projectId"])


def _body(name: str, project: str) -> str:
    if name == "acp/send":
        return load.request(name, mail.SEND)
    return load.request(f"cacp/{name}", proposal(project))
