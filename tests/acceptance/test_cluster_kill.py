"""kill -9 of replicas and of PostgreSQL amid mail through the proxy of a cluster: nothing that was
acknowledged is lost, nothing is delivered twice to visible effect (issue 16)."""

import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import httpx
import pytest

from cli import local_process
from cli.cluster_nodes import Cluster
from schemas.errors import ErrorCode
from server.domain.location import DatabaseUrl
from server.store import keys
from server.store.opening import connect
from tests.acceptance.test_mail_kill import AGENTS, Worker, check
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import START_SECONDS, Node, RpcError, free_ports
from tests.support.postgresql import execute
from tests.support.waiting import PATIENCE, eventually

AGAIN_SECONDS = 0.02

pytestmark = [pytest.mark.postgresql, pytest.mark.soak]


@dataclass
class Door:
    """As much of a node as mail agents use: the proxy, and the database behind it."""

    url: str
    database: DatabaseUrl

    def key(self, agent: str, repo: str, **rights: Any) -> str:
        key = keys.new_key()
        with closing(connect(self.database)) as db:
            keys.add(db, key, agent_id=agent, repo=repo, now=time.time_ns() // 1000, **rights)
        return key

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return execute(self.database, sql)


@dataclass
class Insistent(Worker):
    """It asks again, for the same, until it has its answer."""

    over: threading.Event = field(default_factory=threading.Event)
    interruptions: int = 0

    def work(self) -> None:
        with httpx.Client(base_url=self.agent.node.url, timeout=PATIENCE, trust_env=False) as http:
            while not self.over.is_set():
                try:
                    self.step(http)
                except httpx.TransportError:
                    self.interruptions += 1
                    self.over.wait(AGAIN_SECONDS)
                except RpcError as error:
                    if error.code != ErrorCode.SERVER_ERROR:
                        self.wrong = error
                        return
                    self.interruptions += 1
                    self.over.wait(AGAIN_SECONDS)
                except Exception as error:
                    self.wrong = error
                    return


def kills(cluster: Cluster, seed: int, count: int) -> int:
    """Kill a part, again and again, while agents write to each other. Returns the number of
    messages, of which none is lost and none is doubled."""
    dice = Random(seed)
    node = cast(Node, Door(cluster.url, cluster.database))
    agents: list[MailAgent] = [agent(node, f"worker-{number}") for number in range(AGENTS)]
    workers = [
        Insistent(one, [other for other in agents if other is not one], Random(dice.random()))
        for one in agents
    ]
    threads = [threading.Thread(target=worker.work, daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for _ in range(count):
        # Not a wait for anything: where in the work the kill falls is the point.
        threading.Event().wait(dice.uniform(0.3, 2.0))
        victim = dice.randrange(len(cluster.replicas) + 1)
        if victim == len(cluster.replicas):
            cluster.kill_server()
        else:
            cluster.kill(victim)
        if dice.random() < 0.6:
            eventually(lambda: cluster.look().ready >= 2, 4 * START_SECONDS)
    eventually(lambda: cluster.look().ready == len(cluster.replicas), 4 * START_SECONDS)
    for worker in workers:
        worker.over.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    for worker in workers:
        assert worker.wrong is None, worker.wrong
    print(f"seed {seed}: {sum(worker.interruptions for worker in workers)} interruptions")
    return check(node, list(workers))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_message_is_lost_or_doubled_while_parts_are_killed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlimited = [sys.executable, "-m", "bench.unlimited"]
    monkeypatch.setattr(local_process, "command", lambda *words: [*unlimited, *words])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)
        config = folder / "node.toml"
        config.write_text("acp_thread_rounds = 1000000\n")
        with Cluster(folder / "cluster", free_ports(5), 3, config=config) as cluster:
            eventually(lambda: cluster.look().ready == 3, 4 * START_SECONDS)
            print(f"seed {seed}: {kills(cluster, seed, 8)} messages, none lost, none twice")
