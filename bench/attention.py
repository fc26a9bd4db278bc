"""What an agent's attention costs, by how many contracts its projects have and how many wait."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.fill import CONTENT, Filler
from schemas.attention import ListAttentionParams
from server.auth.authenticator import Caller
from server.methods import METHODS
from server.methods.base import Context
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare

PROJECTS = 100
CONTRACTS = 100
OPEN_EACH = 100
"""One contract in so many is left as proposed; the others are verified."""
CALLS = 200
REPOS = [{"name": name, "role": "service", "language": "python"} for name in ("backend-api", "web")]
OTHER = "aid://localhost/web@1.0.0"


def list_seconds(folder: Path) -> tuple[list[float], int, int]:
    """The seconds of CPU of each `cacp/attention/list` of an agent, how many contracts its projects
    have, and how many items wait."""
    path = folder / "attention.db"
    prepare(path)
    with closing(connect(path, durability="NORMAL")) as db:
        own, other = Filler(db), Filler(db, agent_id=OTHER)
        other.caller = Caller(OTHER, "web", "verified", "key")
        for number in range(PROJECTS):
            db.execute("BEGIN IMMEDIATE")
            _project(own, other, number)
            db.execute("COMMIT")
        run = METHODS["cacp/attention/list"].run
        seconds, total = [], 0
        for _ in range(CALLS):
            ctx = Context(db, other.caller, other.node, "cacp/attention/list", own.stamp)
            begun = time.thread_time()
            total = run(ctx, ListAttentionParams())["total"]
            seconds.append(time.thread_time() - begun)
    return seconds, PROJECTS * CONTRACTS, total


def _project(own: Filler, other: Filler, number: int) -> None:
    """A project of two repos, most of whose contracts are verified."""
    made = own.call("cacp/project/create", name=f"Bench {number}", objective="o", repos=REPOS)
    at: dict[str, Any] = {"projectId": made["projectId"]}
    other.call("cacp/project/join", **at, repoName="web")
    for place in range(CONTRACTS):
        given = {"type": "api_endpoint", "name": f"contract {place}", "content": CONTENT}
        at["contractId"] = own.call("cacp/contract/propose", projectId=at["projectId"], **given)[
            "contractId"
        ]
        if place % OPEN_EACH == 0:
            continue
        other.call("cacp/contract/respond", **at, action="agree")
        for filler in (own, other):
            filler.call("cacp/implementation/complete", **at)
        other.call("cacp/implementation/verify", **at, result="success")
