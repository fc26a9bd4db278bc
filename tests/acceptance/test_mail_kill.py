"""kill -9 amid mail: nothing that was acknowledged is lost, nothing is delivered twice to visible
effect (acp-canonical §12.5)."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, RpcError, bearer
from tests.support.waiting import PATIENCE

AGENTS = 4
THREADS = 3


@dataclass
class Worker:
    """An agent that sends, reads and acknowledges at random until the node is gone.

    What it asked for without an answer it asks for again, as an agent would, before anything else.
    """

    agent: MailAgent
    others: list[MailAgent]
    dice: Random
    sent: dict[str, str] = field(default_factory=dict)
    """The message that each of its client ids was answered with."""
    asked: tuple[str, dict[str, Any]] | None = None
    """The call that has no answer yet."""
    processed: list[str] = field(default_factory=list)
    """What it did its work for, in this order; work that is done is acknowledged."""
    done: set[str] = field(default_factory=set)
    """What it was told is acknowledged."""
    wrong: Exception | None = None

    def run(self, steps: int) -> None:
        with httpx.Client(base_url=self.agent.node.url, timeout=PATIENCE, trust_env=False) as http:
            for _ in range(steps):
                try:
                    self.step(http)
                except httpx.TransportError:
                    return
                except Exception as error:
                    self.wrong = error
                    return

    def step(self, http: httpx.Client) -> None:
        if self.asked is None and self.dice.random() < 0.6:
            number = len(self.sent)
            params: dict[str, Any] = {
                "to": [self.dice.choice(self.others).id],
                "type": "knowledge.push",
                "payload": {"summary": f"{number}"},
                "thread_id": f"{self.agent.address}-{number % THREADS}",
                "sequence": number // THREADS + 1,
                "client_id": str(number),
            }
            self.asked = "acp/send", params
        if self.asked is None:
            listed = self.call(http, "acp/inbox", {"limit": 10})["messages"]
            ids = [one["id"] for one in listed]
            again = self.done.intersection(ids)
            assert not again, f"listed after it was acknowledged: {again}"
            self.processed += [one for one in ids if one not in self.processed]
            if not ids:
                return
            self.asked = "acp/ack", {"message_ids": ids}
        method, params = self.asked
        result = self.call(http, method, params)
        self.asked = None
        if method == "acp/send":
            self.sent[params["client_id"]] = result["message"]["id"]
        else:
            self.done.update(params["message_ids"])

    def call(self, http: httpx.Client, method: str, params: dict[str, Any]) -> Any:
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        answer = http.post("/", json=request, headers=bearer(self.agent.key)).json()
        if "error" in answer:
            error = answer["error"]
            raise RpcError(error["code"], error["message"], error.get("data"))
        return answer["result"]


def one_life(node: Node, workers: list[Worker], seconds: float | None) -> None:
    """Let them work; kill the node after that long, or let them come to an end."""
    steps = 20 if seconds is None else 100_000
    threads = [
        threading.Thread(target=worker.run, args=(steps,), daemon=True) for worker in workers
    ]
    for thread in threads:
        thread.start()
    if seconds is not None:
        # Not a wait for anything: where in the work the kill falls is the point.
        threading.Event().wait(seconds)
        node.kill()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for worker in workers:
        assert worker.wrong is None, worker.wrong


def check(node: Node, workers: list[Worker]) -> int:
    """What every agent was told is so; the number of messages."""
    for worker in workers:
        with httpx.Client(base_url=node.url, timeout=PATIENCE, trust_env=False) as http:
            while worker.asked is not None:
                worker.step(http)
            while ids := [
                one["id"] for one in worker.call(http, "acp/inbox", {"limit": 500})["messages"]
            ]:
                worker.processed += [one for one in ids if one not in worker.processed]
                worker.call(http, "acp/ack", {"message_ids": ids})
                assert not worker.done.intersection(ids)
                worker.done.update(ids)
    sent = [message_id for worker in workers for message_id in worker.sent.values()]
    processed = [message_id for worker in workers for message_id in worker.processed]
    assert len(sent) == len(set(sent))
    assert sorted(processed) == sorted(sent)
    rows = node.query("SELECT id, thread_id, sequence, status FROM messages")
    assert {row[0] for row in rows} == set(sent)
    assert {row[3] for row in rows} == {"read"}
    order = {row[0]: (row[1], row[2]) for row in rows}
    for worker in workers:
        last: dict[str, int] = {}
        for message_id in worker.processed:
            thread, sequence = order[message_id]
            assert last.get(thread, 0) < sequence, "the order within a thread is broken"
            last[thread] = sequence
    return len(sent)


def kills(tmp_path: Path, seed: int, lives: int) -> int:
    dice = Random(seed)
    with Node(tmp_path, unlimited_senders=True, acp_thread_rounds=1_000_000) as node:
        agents = [agent(node, f"worker-{number}") for number in range(AGENTS)]
        workers = [
            Worker(one, [other for other in agents if other is not one], Random(dice.random()))
            for one in agents
        ]
        for _ in range(lives):
            one_life(node, workers, dice.uniform(0.3, 1.2))
            node.start()
        one_life(node, workers, None)
        return check(node, workers)


def test_no_message_is_lost_or_processed_twice(tmp_path: Path) -> None:
    assert kills(tmp_path, seed=1, lives=2) > 20


@pytest.mark.soak
def test_no_message_is_lost_or_processed_twice_over_many_kills(tmp_path: Path) -> None:
    for seed in range(2, 6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        print(f"seed {seed}: {kills(folder, seed, lives=10)} messages, none lost, none twice")
