"""The page: what each view costs the node, what open pages cost the hot path, and how long after a
write they show it."""

import re
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

from bench import load
from bench.fill import AGENT, Filler, proposal
from bench.load import Measured
from bench.mail import fill_box
from bench.node import NodeProcess, node
from server.auth.authenticator import Caller
from server.page.views import VIEWS
from server.store.connection import connect
from server.store.migrate import prepare

CONTRACTS, PACKETS, LETTERS = 30, 20, 50
FRONTEND = Caller("aid://localhost/frontend-app@1.0.0", "frontend-app", "verified", "local")
BACKEND = Caller(AGENT, "backend-api", "verified", "local")
LOOKS = 100
OPEN = 50
WRITES = 20
PATIENCE = 60.0
SETTLING_SECONDS = 2.0
CHANGED = "event: changed"


def fill(path: Path) -> dict[str, str]:
    """A project as teams have it: contracts in each state, questions, mail. Returns what the paths
    of the views name."""
    prepare(path)
    with closing(connect(path, durability="NORMAL")) as db:
        filler = Filler(db)
        db.execute("BEGIN")
        project = filler.project()
        place = {"projectId": project}
        for caller in (BACKEND, FRONTEND):
            filler.caller = caller
            filler.call("cacp/project/join", **place, repoName=caller.repo)
        for number in range(CONTRACTS):
            contract = _contract(filler, project, number)
        filler.caller = FRONTEND
        for number in range(PACKETS):
            filler.call("cacp/context/askQuestion", **place, question=f"Question {number}?")
        filler.caller = BACKEND
        filler.call(
            "cacp/run/report",
            **place,
            runId="nightly",
            status="RUNNING",
            startedAt="2026-01-01T00:00:00Z",
            tasks=[{"id": f"t{number}", "status": "DONE", "attempts": 1} for number in range(30)],
        )
        db.execute("COMMIT")
    fill_box(path, LETTERS)
    with closing(connect(path)) as db:
        ((thread,),) = db.execute("SELECT thread_id FROM messages LIMIT 1").fetchall()
    return {
        "project_id": project,
        "contract_id": contract,
        "thread_id": thread,
        "run_id": "nightly",
    }


def _contract(filler: Filler, project: str, number: int) -> str:
    """A contract, as far as its number says."""
    filler.caller = BACKEND
    contract = filler.contract(project)
    given = {"projectId": project, "contractId": contract}
    steps: list[tuple[Caller, str, dict[str, object]]] = [
        (FRONTEND, "cacp/contract/respond", {"action": "agree"}),
        (BACKEND, "cacp/implementation/complete", {"files": ["a.py"]}),
        (FRONTEND, "cacp/implementation/complete", {"files": ["a.ts"]}),
        (FRONTEND, "cacp/implementation/verify", {"result": "success"}),
    ]
    for caller, method, params in steps[: number % (len(steps) + 1)]:
        filler.caller = caller
        filler.call(method, **given, **params)
    return contract


def costs(folder: Path) -> dict[str, tuple[float, int]]:
    """For each view, the seconds of processor time that the node takes to show it, and its size."""
    path = folder / "page.db"
    params = fill(path)
    measured: dict[str, tuple[float, int]] = {}
    with node(path) as running, _client(running) as client:
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


def beside(folder: Path, rounds: int, seconds: float) -> dict[str, list[tuple[Measured, Measured]]]:
    """contract/get and contract/propose, each without and with open pages of their project."""
    path = folder / "beside.db"
    params = fill(path)
    given = {"projectId": params["project_id"]}
    bodies = {
        "contract/get": load.request(
            "cacp/contract/get", {**given, "contractId": params["contract_id"]}
        ),
        "contract/propose": load.request("cacp/contract/propose", proposal(given["projectId"])),
    }
    measured: dict[str, list[tuple[Measured, Measured]]] = {name: [] for name in bodies}
    with node(path) as running:
        for _ in range(rounds):
            for name, body in bodies.items():
                alone = load.post(running.port, body, seconds, folder)
                with open_pages(running, given["projectId"]):
                    watched = load.post(running.port, body, seconds, folder)
                measured[name].append((alone, watched))
    return measured


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
    project = fill(path)["project_id"]
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
