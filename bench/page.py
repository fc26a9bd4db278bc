"""The page: what each view costs the node, what open pages cost the hot path, and how long after a
write they show it."""

import re
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench import load
from bench.fill import proposal
from bench.load import Measured
from bench.node import NodeProcess, node
from bench.page_ground import USUAL, Ground, fill
from server.page.views import VIEWS

LOOKS = 100
OPEN = 50
WRITES = 20
PATIENCE = 60.0
SETTLING_SECONDS = 2.0
IDLE_SHARE = 0.2
"""Of a processor: a node that takes less has nothing to do but to look for its peers."""
CHANGED = "event: changed"


@dataclass(frozen=True, slots=True)
class Beside:
    """The hot path without and with open pages: what wrk measured, and the node's processor time in
    seconds for each request, that of the pages included."""

    alone: Measured
    watched: Measured
    seconds_alone: float
    seconds_watched: float


def costs(folder: Path, ground: Ground) -> dict[str, tuple[float, int]]:
    """For each view, the seconds of processor time that the node takes to show it, and its size."""
    path = folder / f"page-{ground.contracts}.db"
    params = fill(path, ground)
    measured: dict[str, tuple[float, int]] = {}
    with node(path) as running, _client(running) as client:
        _settle(running)
        for view in VIEWS.values():
            place = view.path.format(**params)
            size = len(client.get(place).raise_for_status().content)
            rounds = []
            for _ in range(5):
                before = running.processor_seconds()
                for _ in range(LOOKS // 5):
                    client.get(place)
                rounds.append((running.processor_seconds() - before) / (LOOKS // 5))
            measured[view.name] = (statistics.median(rounds), size)
    return measured


def _settle(running: NodeProcess) -> None:
    """Wait until the node is idle: it indexes what it finds at its start."""
    while True:
        before = running.processor_seconds()
        time.sleep(SETTLING_SECONDS)
        if running.processor_seconds() - before < IDLE_SHARE * SETTLING_SECONDS:
            return


def beside(folder: Path, rounds: int, seconds: float) -> dict[str, list[Beside]]:
    """contract/get and contract/propose, each without and with open pages of their project."""
    path = folder / "beside.db"
    params = fill(path, USUAL)
    given = {"projectId": params["project_id"]}
    bodies = {
        "contract/get": load.request(
            "cacp/contract/get", {**given, "contractId": params["contract_id"]}
        ),
        "contract/propose": load.request("cacp/contract/propose", proposal(given["projectId"])),
    }
    measured: dict[str, list[Beside]] = {name: [] for name in bodies}
    with node(path) as running:
        for _ in range(rounds):
            for name, body in bodies.items():
                alone = _loaded(running, body, seconds, folder)
                with open_pages(running, given["projectId"]):
                    watched = _loaded(running, body, seconds, folder)
                measured[name].append(Beside(alone[0], watched[0], alone[1], watched[1]))
    return measured


def _loaded(
    running: NodeProcess, body: str, seconds: float, folder: Path
) -> tuple[Measured, float]:
    before = running.processor_seconds()
    run = load.post(running.port, body, seconds, folder)
    return run, (running.processor_seconds() - before) / (run.rate * seconds)


@contextmanager
def open_pages(running: NodeProcess, project: str) -> Iterator[None]:
    """Pages as browsers hold them: each looks again when its stream says so."""
    ended, opened = threading.Event(), threading.Barrier(OPEN + 1)
    threads = [
        threading.Thread(target=_hold, args=(running, project, opened, ended), daemon=True)
        for _ in range(OPEN)
    ]
    for thread in threads:
        thread.start()
    opened.wait(PATIENCE)
    # The first look of all at once is over, and the node knows what a look costs.
    running.call("cacp/contract/propose", proposal(project))
    time.sleep(SETTLING_SECONDS)
    yield
    ended.set()
    # What each waits for: its stream tells of this one.
    running.call("cacp/contract/propose", proposal(project))
    for thread in threads:
        thread.join(PATIENCE)


def _hold(
    running: NodeProcess, project: str, opened: threading.Barrier, ended: threading.Event
) -> None:
    with _client(running) as client, _events(client, project) as events:
        opened.wait(PATIENCE)
        for line in events:
            if ended.is_set():
                return
            if line == CHANGED:
                client.get(f"/ui/projects/{project}")


def live_seconds(folder: Path) -> list[float]:
    """From the answer to a write until an open page has the page that shows it."""
    path = folder / "live.db"
    project = fill(path, USUAL)["project_id"]
    with node(path) as running, _client(running) as client, _events(client, project) as events:
        return [_shown(running, client, events, project) for _ in range(WRITES)]


def _shown(
    running: NodeProcess, client: httpx.Client, events: Iterator[str], project: str
) -> float:
    # Longer than a page pauses between two looks.
    time.sleep(0.5)
    before = _seq(client, project)
    running.call("cacp/contract/propose", proposal(project))
    began = time.perf_counter()
    while not (any(line == CHANGED for line in events) and _seq(client, project) > before):
        pass
    return time.perf_counter() - began


def _seq(client: httpx.Client, project: str) -> int:
    """The newest change that the page shows."""
    text = client.get(f"/ui/projects/{project}").text
    match = re.search(r'data-seq="[^"]*?(\d+)"', text)
    assert match is not None, text
    return int(match[1])


@contextmanager
def _events(client: httpx.Client, project: str) -> Iterator[Iterator[str]]:
    """The lines of the stream of an open board."""
    query = {"view": "feature", "project": project}
    with client.stream("GET", "/ui/events", params=query, timeout=PATIENCE) as stream:
        yield stream.iter_lines()


@contextmanager
def _client(running: NodeProcess) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"http://127.0.0.1:{running.port}",
        timeout=PATIENCE,
        trust_env=False,
        verify=False,
    ) as client:
        yield client
