"""`make bench`: speed as ratios, measured side by side in one run.

The hot path is compared with stock uvicorn and Starlette, which answer a constant; other figures
with the same of a smaller or a quieter node. They are measured in turn; the median of the rounds is
printed.
"""

import argparse
import os
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import attention, contracts, hot, load, mail, page, page_ground, replicas
from bench.capacity import Machines, capacity
from bench.fill import Filler, fill
from bench.hot import get_body, propose_body, seeded, start_seconds
from bench.load import Measured
from bench.node import NodeProcess, node
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare

LARGE = Machines(replicas=8, database_cores=16)
"""What the figures of two cores are projected to."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison")
    parser.add_argument("--seconds", type=int, default=3, help="length of each measurement")
    parser.add_argument("--contracts", type=int, default=1_000_000, help="size of the large node")
    parser.add_argument("--letters", type=int, default=100_000, help="size of the large mailbox")
    parser.add_argument(
        "--only",
        choices=("hot", "wide", "attention", "size", "mail", "page", "replicas", "contracts"),
        help="run only this part",
    )
    options = parser.parse_args()
    if options.only != "attention":
        load.require_wrk()
    print(f"{os.cpu_count()} cores; wrk with {load.CONNECTIONS} connections, one worker process")
    with tempfile.TemporaryDirectory(prefix="cacp-bench-") as name:
        folder = Path(name)
        rounds, seconds = options.rounds, options.seconds
        parts: dict[str, Callable[[], None]] = {
            "hot": lambda: hot_path(folder, rounds, seconds),
            "wide": lambda: wide_read(folder, seconds),
            "attention": lambda: waiting(folder),
            "mail": lambda: letters(folder, options.letters, rounds, seconds),
            "page": lambda: pages(folder, rounds, seconds),
            "contracts": lambda: compared(folder, rounds, seconds),
            "replicas": lambda: on_postgresql(folder, rounds, seconds),
            "size": lambda: size(folder, options.contracts, rounds, seconds),
        }
        for name, part in parts.items():
            if options.only in (None, name):
                part()


def hot_path(folder: Path, rounds: int, seconds: float) -> None:
    """contract/get, and durable contract/propose and acp/send, against stock uvicorn and
    Starlette."""
    for connections in (load.CONNECTIONS, hot.MANY_CONNECTIONS):
        targets = hot.measured(folder, rounds, seconds, connections)
        print(
            f"\nHot path, {connections} connections, of stock uvicorn and Starlette "
            "(aims: get 0.85, propose 0.42, send 0.28; p99 under 4 medians)"
        )
        for target in targets:
            show(target.name, target.runs, ratios_of(target.runs, targets[0].runs))
            print(f"    {target.cost()}")
    for name, run in hot.live_beside(folder, seconds).items():
        print(f"  /live beside {name:17} p99 {run.p99 * 1000:7.2f} ms (aim 10)")
    started = statistics.median(start_seconds(folder / "start.db") for _ in range(rounds))
    print(f"  start to first answer          {started:.2f} s (aim 0.7)")


def compared(folder: Path, rounds: int, seconds: float) -> None:
    """Contracts compared, and proposals with and without recognition of their dialect."""
    print("\nContracts")
    each = statistics.median(contracts.endpoint_seconds() for _ in range(rounds))
    print(
        f"  endpoints read and compared    {contracts.ENDPOINTS / each:,.0f} a second (aim 1,000)"
    )
    whole, size = contracts.document_seconds()
    print(f"  two documents of {size:.1f} MB        {whole:.2f} s (aim 2)")
    tried = statistics.median(contracts.probe_seconds(rounds))
    print(f"  a probe of 100 cases           {tried:.2f} s (aim 3)")
    opaque, recognised = contracts.propose_runs(folder, rounds, seconds)
    ratio = contracts.median_ratio(recognised, opaque)
    print(f"  propose, dialect recognised    {ratio:.2f} of opaque (aim 0.95)")


def wide_read(folder: Path, seconds: float) -> None:
    """p99 of /live, alone and while a project of 1,000 contracts is read without pause."""
    path = folder / "wide.db"
    prepare(path)
    db = connect(path)
    db.execute("BEGIN IMMEDIATE")
    filler = Filler(db)
    project_id = filler.project()
    for _ in range(1_000):
        filler.contract(project_id)
    db.execute("COMMIT")
    db.close()
    with node(path) as running:
        alone = load.get(running.port, "/live", seconds)
        stop = threading.Event()
        reads = 0

        def read_on() -> None:
            nonlocal reads
            while not stop.is_set():
                running.call("cacp/project/get", {"projectId": project_id})
                reads += 1

        reader = threading.Thread(target=read_on)
        reader.start()
        beside = load.get(running.port, "/live", seconds)
        stop.set()
        reader.join()
    print("\nproject/get of 1,000 contracts (aim: p99 of /live under 50 ms beside it)")
    print(f"  /live alone      p99 {alone.p99 * 1000:8.2f} ms")
    print(
        f"  /live beside it  p99 {beside.p99 * 1000:8.2f} ms   "
        f"({reads / seconds:.0f} project/get a second)"
    )


def waiting(folder: Path) -> None:
    """cacp/attention/list of an agent in many projects, in this process."""
    seconds, contracts, items = attention.list_seconds(folder)
    median, worst = mail.median_and_worst(seconds)
    print(f"\nattention/list in {attention.PROJECTS} projects, {contracts:,} contracts (aim 2 ms)")
    print(f"  {items} items wait   median {median * 1000:.2f} ms   worst {worst * 1000:.2f} ms")


def letters(folder: Path, size: int, rounds: int, seconds: float) -> None:
    """acp/inbox of a large mailbox compared with a small one, and the time until a waiting inbox
    wakes."""
    print("\nMail (aims: 50 of a large box as fast as of 100, in < 1 ms; wake < 20 ms)")
    small, *_ = boxes = mail.boxes(folder, size, rounds, seconds)
    for name, runs in boxes.items():
        pairs = zip(runs, boxes[small], strict=True)
        show(
            f"acp/inbox of 50 {name}", runs, [run.rate / small_run.rate for run, small_run in pairs]
        )
    median, worst = mail.median_and_worst(mail.wake_seconds(folder))
    print(f"  send to waiting inbox   median {median * 1000:.1f} ms   worst {worst * 1000:.1f} ms")


def on_postgresql(folder: Path, rounds: int, seconds: float) -> None:
    """Replicas compared with a node on SQLite, and with each other."""
    print(
        f"\nReplicas on PostgreSQL, {replicas.CONNECTIONS} connections, synchronous_commit=on "
        "(aims: one 0.8 of SQLite, three 1.0 of one; wake < 20 ms)"
    )
    with replicas.database() as server:
        for name, sides in replicas.writes(folder, server, rounds, seconds).items():
            show(f"{name} on SQLite", sides.sqlite, [1.0] * rounds)
            show(f"{name}, one replica", sides.one, ratios_of(sides.one, sides.sqlite))
            show(f"{name}, three", sides.three, ratios_of(sides.three, sides.one))
        for name, costs in replicas.unit_costs(folder, server, seconds).items():
            ends, rate = capacity(costs, LARGE)
            print(
                f"  {name:28} costs the replica {costs.replica:.0f} us, the database "
                f"{costs.database:.0f} us, the lock {costs.lock:.0f} us: {LARGE.replicas} replicas "
                f"and {LARGE.database_cores} cores carry {rate:,.0f}/s ({ends})"
            )
        median, worst = mail.median_and_worst(replicas.wake_seconds(folder, server))
    print(f"  send to waiting inbox   median {median * 1000:.1f} ms   worst {worst * 1000:.1f} ms")


def ratios_of(runs: list[Measured], others: list[Measured]) -> list[float]:
    return [run.rate / other.rate for run, other in zip(runs, others, strict=True)]


def pages(folder: Path, rounds: int, seconds: float) -> None:
    """What views cost the node, what open pages cost others, how soon they show a write."""
    usual, large = page.costs(folder, page_ground.USUAL), page.costs(folder, page_ground.LARGE)
    print(
        f"\nPages (aims: median < 15 ms of the node's time; ratios > 0.9 beside {page.OPEN} open)"
    )
    for name, (cost, characters) in usual.items():
        much, more = large[name]
        print(
            f"  {name:28} {cost * 1000:6.1f} ms   {characters / 1000:6.1f} kB   "
            f"large {much * 1000:6.1f} ms   {more / 1000:6.1f} kB"
        )
    medians = [statistics.median(cost for cost, _ in each.values()) for each in (usual, large)]
    print(f"  median {medians[0] * 1000:28.1f} ms   large {medians[1] * 1000:.1f} ms")
    for name, runs in page.beside(folder, rounds, seconds).items():
        ratios = [run.watched.rate / run.alone.rate for run in runs]
        show(f"{name} beside {page.OPEN}", [run.watched for run in runs], ratios)
        alone, watched = (
            statistics.median(each)
            for each in zip(
                *((run.seconds_alone, run.seconds_watched) for run in runs), strict=True
            )
        )
        print(
            f"    the node's time a request   alone {alone * 1e6:.0f} us   "
            f"beside {watched * 1e6:.0f} us   ratio {alone / watched:.2f}"
        )
    middle, worst = mail.median_and_worst(page.live_seconds(folder))
    print(
        f"  write to shown   median {middle * 1000:.0f} ms   worst {worst * 1000:.0f} ms (aim 300)"
    )


def size(folder: Path, contracts: int, rounds: int, seconds: float) -> None:
    """A large node compared with an empty one: start, get, propose, memory."""
    projects = max(1, contracts // 100)
    large_path, empty_path = folder / "large.db", folder / "empty.db"
    project_id, contract_id = fill(large_path, projects, 100)
    prepare(empty_path)
    starts = {
        path: [start_seconds(path) for _ in range(rounds)] for path in (empty_path, large_path)
    }
    with ExitStack() as stack:
        empty = stack.enter_context(node(empty_path))
        large = stack.enter_context(node(large_path))
        ids = {id(empty): seeded(empty), id(large): (project_id, contract_id)}
        get: dict[int, list[Measured]] = {id(empty): [], id(large): []}
        propose: dict[int, list[Measured]] = {id(empty): [], id(large): []}
        for server in in_turn(empty, large, rounds):
            project, contract = ids[id(server)]
            get[id(server)].append(
                load.post(server.port, get_body(project, contract), seconds, folder)
            )
            propose[id(server)].append(
                load.post(server.port, propose_body(project), seconds, folder)
            )
        memory = large.resident_bytes()
        file_bytes = large_path.stat().st_size
    print(f"\n{projects * 100:,} contracts in {projects:,} projects, beside an empty node")
    print(f"  file {file_bytes / 2**20:,.0f} MiB")
    for name, runs in (("contract/get", get), ("contract/propose", propose)):
        pairs = zip(runs[id(large)], runs[id(empty)], strict=True)
        show(
            f"{name} (aim 0.8)",
            runs[id(large)],
            [large_run.rate / empty_run.rate for large_run, empty_run in pairs],
        )
    first, second = (statistics.median(starts[path]) for path in (empty_path, large_path))
    print(f"  start to first answer   empty {first:.2f} s (aim < 1)   large {second:.2f} s")
    print(f"  start, large of empty   {second / first:.2f} (aim < 1.5)")
    print(f"  resident memory         {memory / 2**20:.0f} MiB (aim < 200)")


def in_turn(first: NodeProcess, second: NodeProcess, rounds: int) -> Iterator[NodeProcess]:
    for number in range(rounds):
        yield from (first, second) if number % 2 == 0 else (second, first)


def show(name: str, runs: list[Measured], ratios: list[float]) -> None:
    rate = statistics.median(run.rate for run in runs)
    median = statistics.median(run.median for run in runs)
    p99 = statistics.median(run.p99 for run in runs)
    failed = sum(run.failed for run in runs)
    print(
        f"  {name:28} {rate:8,.0f}/s   ratio {statistics.median(ratios):5.2f} "
        f"({min(ratios):.2f}-{max(ratios):.2f})   median {median * 1000:6.2f} ms   "
        f"p99 {p99 * 1000:7.2f} ms = {p99 / median:4.1f} medians"
        + (f"   {failed} FAILED" if failed else "")
    )


if __name__ == "__main__":
    main()
