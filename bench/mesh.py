"""What a mesh costs, compared with a node alone. All processes share the machine's cores.

| comparison | aim |
|---|---|
| p99 of 300 writes a second, with three live peers and without | at most 1.5 |
| writes at full speed, with three live peers and without | at least 0.4 |
| time until three peers have all writes, by the time of the writes | at most 3 |
| p99 of 300 writes a second, with one of three peers down and with all up | at most 1.2 |
| catch-up of a new node | at least 5,000 entities a second |
| ten idle nodes that hold the same | under 1 % of a core each |
"""

import argparse
import asyncio
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import uvloop

from bench.fill import REPOS, fill, proposal
from bench.node import NodeProcess, node
from bench.wire import Wire

TOKEN = "a mesh token for nodes on loopback"
RATE = 300
STEADY_CONNECTIONS = 64
AT_ONCE = 16
"""Connections at full speed."""
QUIET_SECONDS = 20.0
PATIENCE = 180.0
"""Seconds. A part that takes longer says what it waited for, and the next part begins."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mesh", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="rounds of each comparison")
    parser.add_argument("--seconds", type=float, default=4, help="length of each measurement")
    parser.add_argument("--burst", type=int, default=10_000, help="contracts written at once")
    parser.add_argument(
        "--entities", type=int, default=100_000, help="entities that a new node fetches"
    )
    parser.add_argument("--nodes", type=int, default=10, help="size of the idle mesh")
    parser.add_argument("--quiet-seconds", type=float, default=QUIET_SECONDS)
    parser.add_argument(
        "--only", choices=["writes", "catch-up", "quiet"], help="run only this part"
    )
    run(parser.parse_args())


def run(options: argparse.Namespace) -> None:
    parts: dict[str, Callable[[Path], None]] = {
        "writes": lambda at: writes(at, options.rounds, options.seconds, options.burst),
        "catch-up": lambda at: catch_up(at, options.entities),
        "quiet": lambda at: quiet(at, options.entities, options.nodes, options.quiet_seconds),
    }
    for name, part in parts.items():
        if options.only not in (None, name):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="cacp-bench-mesh-") as folder:
            try:
                part(Path(folder))
            except Unsettled as waited:
                print(f"\n{name}: gave up after {PATIENCE:.0f} s of waiting until {waited}")
        load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
        print(f"  ({name}: {time.monotonic() - began:.0f} s; load average of the machine {load})")


class Unsettled(Exception):
    """The mesh did not reach an expected state; the message names the state."""


def say(progress: str) -> None:
    print(f"  {progress}", file=sys.stderr, flush=True)


def writes(folder: Path, rounds: int, seconds: float, burst: int) -> None:
    """Measures a node alone and one with three live peers, in turn."""
    with ExitStack() as stack:
        alone = stack.enter_context(member(folder, "alone"))
        first = stack.enter_context(member(folder, "first"))
        others: list[NodeProcess] = []
        for number in range(3):
            others.append(stack.enter_context(member(folder, f"o{number}", first, *others)))
        until(
            "four nodes know each other",
            lambda: all(peers(server) == 3 for server in [first, *others]),
        )
        projects = {id(server): project(server) for server in (alone, first)}
        steady: dict[str, list[float]] = {"none": [], "three": [], "one down": []}
        full: dict[str, list[float]] = {"none": [], "three": []}
        for number in range(rounds):
            say(f"writes: round {number + 1} of {rounds}")
            for name, server in (("none", alone), ("three", first)):
                steady[name].append(p99(server, projects[id(server)], seconds))
                settle(first, others)
            for name, server in (("none", alone), ("three", first)):
                full[name].append(rate(server, projects[id(server)], seconds))
                settle(first, others)
            os.kill(others[0].process.pid, signal.SIGSTOP)
            steady["one down"].append(p99(first, projects[id(first)], seconds))
            os.kill(others[0].process.pid, signal.SIGCONT)
            settle(first, others)
        say(f"writes: {burst:,} at once")
        took, arrived = spread(first, others, projects[id(first)], burst)
    print("\nWrites at a node with three live peers, beside one without")
    show("p99 at 300 a second (aim 1.5)", steady["three"], steady["none"], 1_000, "ms")
    show("p99, one peer hangs, beside all up (1.2)", steady["one down"], steady["three"], 1e3, "ms")
    show("full speed (aim 0.4)", full["three"], full["none"], 1, "/s")
    print(
        f"  {burst:,} contracts: written in {took:.1f} s, on all three others in {arrived:.1f} s = "
        f"{arrived / took:.2f} times (aim 3)"
    )


def catch_up(folder: Path, entities: int) -> None:
    """Measures how fast a new node fetches everything from a full one."""
    path = folder / "full.db"
    say(f"catch-up: making a node with {entities:,} contracts")
    each = min(1_000, entities)
    fill(path, max(1, entities // 1_000), each, agent_id("full"), count_digests=True)
    with member(folder, "full", db=path) as full:
        started, before = time.monotonic(), full.processor_seconds()
        with member(folder, "fresh", full) as fresh:
            wanted = count(full)
            say("catch-up: a new node joins")
            until("the new node has all", lambda: count(fresh) >= wanted)
            seconds = time.monotonic() - started
            shares = (
                (full.processor_seconds() - before) / seconds,
                fresh.processor_seconds() / seconds,
            )
    print(
        f"\nCatch-up of {entities:,} contracts by a new node: {seconds:.1f} s, "
        f"{entities / seconds:,.0f} a second (aim 5,000); "
        f"cores used: {shares[0]:.2f} by the full node, {shares[1]:.2f} by the new one"
    )


def quiet(folder: Path, entities: int, nodes: int, seconds: float) -> None:
    """Measures nodes that hold the same and have nothing to send."""
    path = folder / "quiet.db"
    say(f"quiet: making a node with {entities:,} contracts")
    fill(path, max(1, entities // 1_000), min(1_000, entities), count_digests=True)
    with ExitStack() as stack:
        mesh: list[NodeProcess] = []
        for number in range(nodes):
            copy = folder / f"quiet{number}.db"
            shutil.copy(path, copy)
            mesh.append(stack.enter_context(member(folder, f"q{number}", *mesh, db=copy)))
        say(f"quiet: {nodes} nodes run")
        until("all know each other", lambda: all(peers(server) == nodes - 1 for server in mesh))
        until("nothing waits", lambda: all(backlog(server) == 0 for server in mesh))
        until("no node works", lambda: idle(mesh))
        say(f"quiet: measuring for {seconds:g} s")
        before = [server.processor_seconds() for server in mesh]
        time.sleep(seconds)
        shares = [
            (server.processor_seconds() - was) / seconds
            for server, was in zip(mesh, before, strict=True)
        ]
    print(
        f"\nA quiet mesh of {nodes} nodes with {entities:,} contracts: "
        f"{max(shares):.2%} of a core at most, {statistics.mean(shares):.2%} on average (aim 1 %)"
    )


# --- nodes --------------------------------------------------------------------------------------


@contextmanager
def member(
    folder: Path, name: str, *known: NodeProcess, db: Path | None = None
) -> Iterator[NodeProcess]:
    """A node of the mesh, with `known` as its configured peers."""
    settings = {
        "CACP_MESH_TOKEN": TOKEN,
        "CACP_AGENT_ID": agent_id(name),
        "CACP_PEERS": ",".join(f"http://127.0.0.1:{server.port}" for server in known),
    }
    with node(db or folder / f"{name}.db", repo=name, settings=settings) as running:
        yield running


def agent_id(name: str) -> str:
    return f"aid://localhost/{name}@1.0.0"


def peers(server: NodeProcess) -> int:
    return sum(peer["trust"] == "verified" for peer in listed(server))


def backlog(server: NodeProcess) -> int:
    return max((peer["sync"]["backlog"] for peer in listed(server) if "sync" in peer), default=0)


def listed(server: NodeProcess) -> list[dict[str, Any]]:
    answer = httpx.get(f"http://127.0.0.1:{server.port}/peers", timeout=60).json()
    return answer["peers"]  # type: ignore[no-any-return]


def idle(mesh: list[NodeProcess]) -> bool:
    """Whether all nodes are idle for five seconds."""
    before = [server.processor_seconds() for server in mesh]
    time.sleep(5)
    return all(
        server.processor_seconds() - was < 0.25 for server, was in zip(mesh, before, strict=True)
    )


def count(server: NodeProcess) -> int:
    """How many contracts a node holds, read from its file."""
    return server.number("SELECT count(*) FROM contracts")


def settle(first: NodeProcess, others: list[NodeProcess]) -> None:
    until("all hold the same", lambda: len({count(server) for server in [first, *others]}) == 1)


def until(what: str, true: Callable[[], bool]) -> None:
    """Raises Unsettled, naming `what` was waited for."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise Unsettled(what)
        time.sleep(0.05)


# --- load ---------------------------------------------------------------------------------------


def project(server: NodeProcess) -> str:
    made = server.call("cacp/project/create", {"name": "Bench", "objective": "o", "repos": REPOS})
    project_id = str(made["projectId"])
    server.call("cacp/project/join", {"projectId": project_id, "repoName": "backend-api"})
    return project_id


def p99(server: NodeProcess, project_id: str, seconds: float) -> float:
    """The p99 latency of writes that arrive at a steady rate, also while earlier ones wait."""
    body = propose(project_id)

    async def write(wire: Wire, due: float) -> float:
        answer = await wire.post(body)
        assert b'"result"' in answer, answer
        return time.perf_counter() - due

    async def run() -> list[float]:
        async with Wire(server.port, STEADY_CONNECTIONS) as wire:
            began, tasks = time.perf_counter(), []
            for number in range(int(RATE * seconds)):
                due = began + number / RATE
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                tasks.append(asyncio.create_task(write(wire, due)))
            return await asyncio.gather(*tasks)

    return statistics.quantiles(uvloop.run(run()), n=100)[98]


def rate(server: NodeProcess, project_id: str, seconds: float) -> float:
    """Writes per second at full speed."""
    return uvloop.run(burst_of(server, project_id, seconds=seconds))


async def burst_of(
    server: NodeProcess, project_id: str, *, most: int | None = None, seconds: float = PATIENCE
) -> float:
    done, began = 0, time.perf_counter()
    body = propose(project_id)

    async def write_on(wire: Wire) -> None:
        nonlocal done
        while time.perf_counter() - began < seconds and (most is None or done < most):
            done += 1
            answer = await wire.post(body)
            assert b'"result"' in answer, answer

    async with Wire(server.port, AT_ONCE) as wire:
        await asyncio.gather(*(write_on(wire) for _ in range(AT_ONCE)))
    return done / (time.perf_counter() - began)


def spread(
    first: NodeProcess, others: list[NodeProcess], project_id: str, burst: int
) -> tuple[float, float]:
    """Seconds until a burst was written, and until it was on all other nodes."""
    began = time.perf_counter()
    uvloop.run(burst_of(first, project_id, most=burst))
    took = time.perf_counter() - began
    settle(first, others)
    return took, time.perf_counter() - began


def propose(project_id: str) -> bytes:
    request = {"jsonrpc": "2.0", "method": "cacp/contract/propose", "id": 1}
    return orjson.dumps(request | {"params": proposal(project_id)})


def show(name: str, with_: list[float], without: list[float], scale: float, unit: str) -> None:
    ratios = [measured / baseline for measured, baseline in zip(with_, without, strict=True)]
    print(
        f"  {name:42} {statistics.median(with_) * scale:8,.1f} {unit} beside "
        f"{statistics.median(without) * scale:8,.1f} {unit}   ratio "
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
