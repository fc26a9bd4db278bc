"""The hot path: contract/get, and durable contract/propose and acp/send, against the yardstick."""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from bench import load
from bench.fill import REPOS, proposal
from bench.load import Measured
from bench.mail import SEND, UNLIMITED
from bench.node import NodeProcess, bare, node, stock

MANY_CONNECTIONS = 64
HOT = ("contract/get", "contract/propose", "acp/send")


@dataclass(slots=True)
class LoadedServer:
    """A server under one load, with what was measured of it."""

    name: str
    server: NodeProcess
    body: str
    runs: list[Measured] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)
    threads: list[float] = field(default_factory=list)
    """Processor seconds a call, of the event loop and of all other threads."""

    def measure(self, seconds: float, folder: Path, connections: int) -> None:
        loop, whole = self.server.loop_seconds(), self.server.processor_seconds()
        run = load.post(self.server.port, self.body, seconds, folder, connections)
        calls = run.rate * seconds
        loop, whole = self.server.loop_seconds() - loop, self.server.processor_seconds() - whole
        self.runs.append(run)
        self.loop.append(loop / calls)
        self.threads.append((whole - loop) / calls)

    def cost(self) -> str:
        """Processor microseconds a call by thread, medians of the runs."""
        loop, threads = (statistics.median(each) * 1e6 for each in (self.loop, self.threads))
        return f"processor {loop + threads:4.0f} us = loop {loop:4.0f} + threads {threads:4.0f}"


@contextmanager
def targets(folder: Path) -> Iterator[list[LoadedServer]]:
    """The yardstick first, then the node's own HTTP stack, then a node for each method: what a node
    does in the background after many writes is not charged to another method."""
    body = load.request("cacp/project/list", {})
    with ExitStack() as stack:
        loaded = [
            LoadedServer("stock", stack.enter_context(stock()), body),
            LoadedServer("own stack", stack.enter_context(bare()), body),
        ]
        for method in HOT:
            path = folder / f"{method.replace('/', '-')}.db"
            running = stack.enter_context(node(path, program=UNLIMITED))
            loaded.append(LoadedServer(method, running, hot_body(running, method)))
        yield loaded


def hot_body(running: NodeProcess, method: str) -> str:
    """A request of a hot method, for a node that is given what it names."""
    if method == "acp/send":
        return load.request(method, SEND)
    project_id, contract_id = seeded(running)
    if method == "contract/get":
        return get_body(project_id, contract_id)
    return propose_body(project_id)


def measured(folder: Path, rounds: int, seconds: float, connections: int) -> list[LoadedServer]:
    """Measures the targets in turn."""
    with targets(folder) as all_targets:
        for _ in range(rounds):
            for target in all_targets:
                target.measure(seconds, folder, connections)
        return all_targets


def live_beside(folder: Path, seconds: float) -> dict[str, Measured]:
    """GET /live over one connection, beside each load of a node."""
    beside: dict[str, Measured] = {}
    with targets(folder) as all_targets:
        for target in all_targets[2:]:
            busy = Thread(target=target.measure, args=(seconds + 1, folder, load.CONNECTIONS))
            busy.start()
            beside[target.name] = load.get(target.server.port, "/live", seconds)
            busy.join()
    return beside


def start_seconds(path: Path) -> float:
    """Seconds from the start of a node's process to its first answer."""
    with node(path) as running:
        return running.start_seconds


def seeded(running: NodeProcess) -> tuple[str, str]:
    """Makes a project and a contract in it over HTTP. Returns their ids."""
    project = running.call(
        "cacp/project/create", {"name": "Bench", "objective": "Speed", "repos": REPOS}
    )["projectId"]
    contract = running.call("cacp/contract/propose", proposal(project))["contractId"]
    return project, contract


def get_body(project_id: str, contract_id: str) -> str:
    return load.request("cacp/contract/get", {"projectId": project_id, "contractId": contract_id})


def propose_body(project_id: str) -> str:
    return load.request("cacp/contract/propose", proposal(project_id))
