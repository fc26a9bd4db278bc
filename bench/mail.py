"""Mail: a page of a large mailbox compared with one of a small, and the time until a waiting inbox
gets what is sent."""

import statistics
import threading
import time
from contextlib import closing
from pathlib import Path

from bench import load
from bench.fill import AGENT, Filler
from bench.load import Measured
from bench.node import NodeProcess, node
from schemas.acp_calls import SendParams
from server.domain.acp.rules import MailRules
from server.methods import METHODS
from server.methods.base import Context
from server.store.group_commit import Transaction
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare

UNLIMITED = "bench.unlimited"
SEND = {"to": [AGENT], "type": "knowledge.push", "payload": {"summary": "the schema is done"}}
SMALL = 100
PINGS = 40


def boxes(folder: Path, size: int, rounds: int, seconds: float) -> dict[str, list[Measured]]:
    """acp/inbox of 50 messages, from a mailbox of 100 and one of `size`, in turn."""
    small_path, large_path = folder / "small.db", folder / "large-box.db"
    fill_box(small_path, SMALL)
    fill_box(large_path, size)
    body = load.request("acp/inbox", {"limit": 50})
    names = (f"of {SMALL:,}", f"of {size:,}")
    measured: dict[str, list[Measured]] = {name: [] for name in names}
    with node(small_path) as small, node(large_path) as large:
        pair = list(zip(names, (small, large), strict=True))
        for _, server in pair:
            # The first listing marks what it shows as delivered.
            server.call("acp/inbox", {"limit": 50})
        for number in range(rounds):
            for name, server in pair if number % 2 == 0 else reversed(pair):
                measured[name].append(load.post(server.port, body, seconds, folder))
    return measured


def wake_seconds(folder: Path) -> list[float]:
    """Seconds from the start of a send to the answer of an inbox that waits for it."""
    with node(folder / "wake.db", program=UNLIMITED) as running:
        return pings(running, running)


def pings(waits: NodeProcess, sends: NodeProcess) -> list[float]:
    """The same where the inbox waits at one replica, and another is sent the message."""
    return [_ping(waits, sends) for _ in range(PINGS)]


def _ping(waits: NodeProcess, sends: NodeProcess) -> float:
    cursor = waits.call("acp/inbox", {})["cursor"]
    arrived: list[float] = []

    def wait() -> None:
        waits.call("acp/inbox", {"cursor": cursor, "wait": 20})
        arrived.append(time.perf_counter())

    waiting = threading.Thread(target=wait)
    waiting.start()
    # By then the inbox waits.
    time.sleep(0.05)
    started = time.perf_counter()
    sent = sends.call("acp/send", SEND)["message"]["id"]
    waiting.join()
    waits.call("acp/ack", {"message_ids": [sent]})
    return arrived[0] - started


def fill_box(path: Path, count: int) -> None:
    """Fills a mailbox with `count` unread messages, sent through the node's own method."""
    prepare(path)
    with closing(connect(path, durability="NORMAL")) as db:
        filler = Filler(db, MailRules(limits={}))
        params = SendParams.model_validate(SEND)
        for start in range(0, count, 5_000):
            db.execute("BEGIN IMMEDIATE")
            for _ in range(min(5_000, count - start)):
                filler.stamp += 1
                transaction = Transaction(db, filler.stamp)
                context = Context(
                    db, filler.caller, filler.node, "acp/send", filler.stamp, transaction
                )
                METHODS["acp/send"].run(context, params)
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def median_and_worst(seconds: list[float]) -> tuple[float, float]:
    return statistics.median(seconds), max(seconds)
