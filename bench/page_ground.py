"""What the page shows in `make bench`: a project as teams have it, and one that is large."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fill import AGENT, CONTENT, Filler
from bench.mail import fill_box
from server.auth.authenticator import Caller
from server.store import peers
from server.store.sqlite.connection import connect

TASKS = 30
UNREACHABLE = "http://127.0.0.1:9/peer"
RUN = "nightly"


@dataclass(frozen=True, slots=True)
class Ground:
    """How much there is of each kind."""

    repos: int
    contracts: int
    packets: int
    letters: int
    peers: int


USUAL = Ground(repos=4, contracts=30, packets=20, letters=50, peers=0)
LARGE = Ground(repos=50, contracts=1_000, packets=2_000, letters=100_000, peers=50)


def fill(path: Path, ground: Ground) -> dict[str, str]:
    """Fill a database: contracts in each state, questions, a run, mail, peers. Returns what the
    paths of the views name."""
    fill_box(path, ground.letters)
    callers = [Caller(AGENT, "backend-api", "verified", "local")]
    for number in range(1, ground.repos):
        name = f"repo-{number}"
        callers.append(Caller(f"aid://localhost/{name}@1.0.0", name, "verified", "local"))
    with closing(connect(path, durability="NORMAL")) as db:
        filler = Filler(db)
        db.execute("BEGIN IMMEDIATE")
        repos = [{"name": each.repo, "role": "service", "language": "python"} for each in callers]
        made = filler.call("cacp/project/create", name="Bench", objective="Speed", repos=repos)
        place = {"projectId": made["projectId"]}
        for caller in callers:
            filler.caller = caller
            filler.call("cacp/project/join", **place, repoName=caller.repo)
        for number in range(ground.contracts):
            contract = _contract(filler, place, callers, number)
        for number in range(ground.packets):
            filler.caller = callers[number % len(callers)]
            filler.call("cacp/context/askQuestion", **place, question=f"Question {number}?")
        filler.caller = callers[0]
        tasks = [{"id": f"t{each}", "status": "DONE", "attempts": 1} for each in range(TASKS)]
        report = {"status": "RUNNING", "startedAt": "2026-01-01T00:00:00Z", "tasks": tasks}
        filler.call("cacp/run/report", **place, runId=RUN, **report)
        for number in range(ground.peers):
            agent = f"aid://localhost/peer-{number}@1.0.0"
            peers.put(db, agent, f"{UNREACHABLE}-{number}", None, "unkeyed", filler.stamp)
        db.execute("COMMIT")
        ((thread,),) = db.execute("SELECT thread_id FROM messages LIMIT 1").fetchall()
    project_id = str(made["projectId"])
    return {
        "project_id": project_id,
        "contract_id": contract,
        "thread_id": thread,
        "run_id": RUN,
    }


def _contract(filler: Filler, place: dict[str, str], callers: list[Caller], number: int) -> str:
    """A contract of two repos, as far as its number says."""
    provider = callers[number % len(callers)]
    consumer = callers[(number * 7 + 1) % len(callers)]
    if consumer == provider:
        consumer = callers[(number + 1) % len(callers)]
    filler.caller = provider
    proposed: dict[str, Any] = {"name": f"Contract {number}", "content": CONTENT}
    parties = [provider.repo, consumer.repo]
    contract = filler.call(
        "cacp/contract/propose", **place, type="api_endpoint", parties=parties, **proposed
    )["contractId"]
    steps: list[tuple[Caller, str, dict[str, Any]]] = [
        (consumer, "cacp/contract/respond", {"action": "agree"}),
        (provider, "cacp/implementation/complete", {"files": ["a.py"]}),
        (consumer, "cacp/implementation/complete", {"files": ["a.ts"]}),
        (consumer, "cacp/implementation/verify", {"result": "success"}),
    ]
    for caller, method, params in steps[: number % (len(steps) + 1)]:
        filler.caller = caller
        filler.call(method, **place, contractId=contract, **params)
    return str(contract)
