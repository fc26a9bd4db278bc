"""50 agents and 20,000 messages, with slow and dead recipients (issue: it must hold)."""

import os
import threading
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, bearer

AGENTS = 50
DEAD = 5
"""Agents that never read."""
MESSAGES = 20_000
SENDERS = 8
MEMORY_MORE = 60 * 1024 * 1024
"""Bytes that the node may grow by between the first tenth of the work and its end."""


def resident(node: Node) -> int:
    assert node.process is not None
    pages = Path(f"/proc/{node.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def call(http: httpx.Client, who: MailAgent, method: str, params: dict[str, Any]) -> Any:
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
    answer = http.post("/", json=request, headers=bearer(who.key)).json()
    assert "result" in answer, answer
    return answer["result"]


def send(node: Node, place: int, agents: list[MailAgent], sizes: list[int]) -> None:
    """A share of the messages: each agent's are a thread of its own to each recipient."""
    dice = Random(place)
    mine = agents[place::SENDERS]
    counts: dict[tuple[str, str], int] = {}
    with httpx.Client(base_url=node.url, timeout=120, trust_env=False) as http:
        for number in range(MESSAGES // SENDERS):
            who, to = dice.choice(mine), dice.choice(agents)
            key = (who.id, to.id)
            counts[key] = counts.get(key, 0) + 1
            params = {
                "to": [to.id],
                "type": "knowledge.push",
                "payload": {"summary": f"{counts[key]}"},
                "thread_id": f"{who.address}>{to.address}",
            }
            call(http, who, "acp/send", params)
            if place == 0 and number % (MESSAGES // SENDERS // 10) == 0:
                sizes.append(resident(node))


def read(
    node: Node, who: MailAgent, stop: threading.Event, slow: bool, got: dict[str, list[str]]
) -> None:
    seen: list[str] = []
    with httpx.Client(base_url=node.url, timeout=120, trust_env=False) as http:
        ack: list[str] = []
        while True:
            last = stop.is_set()
            params: dict[str, Any] = {"limit": 5 if slow else 200, "wait": 0 if last else 1}
            if ack:
                params["ack"] = ack
            found = call(http, who, "acp/inbox", params)["messages"]
            ack = [one["id"] for one in found]
            seen += [f"{one['thread_id']} {one['payload']['summary']}" for one in found]
            if last and not found:
                break
    got[who.address] = seen


@pytest.mark.soak
def test_fifty_agents_and_twenty_thousand_messages(tmp_path: Path) -> None:
    with Node(tmp_path, unlimited_senders=True) as node:
        agents = [agent(node, f"agent-{number}") for number in range(AGENTS)]
        stop, sizes, got = threading.Event(), list[int](), dict[str, list[str]]()
        readers = [
            threading.Thread(target=read, args=(node, who, stop, number % 10 == 0, got))
            for number, who in enumerate(agents[DEAD:])
        ]
        senders = [
            threading.Thread(target=send, args=(node, place, agents, sizes))
            for place in range(SENDERS)
        ]
        for thread in [*readers, *senders]:
            thread.start()
        for thread in senders:
            thread.join()
        stop.set()
        for thread in readers:
            thread.join()
        sizes.append(resident(node))
        for who in agents[:DEAD]:
            read(node, who, stop, False, got)
        check_all(node, got)
        print(f"memory {[size // 2**20 for size in sizes]} MiB")
        assert sizes[-1] - sizes[1] < MEMORY_MORE


def check_all(node: Node, got: dict[str, list[str]]) -> None:
    """Everything arrived, once, and in the order of its thread."""
    every = [line for lines in got.values() for line in lines]
    assert len(every) == len(set(every)) == MESSAGES
    for lines in got.values():
        last: dict[str, int] = {}
        for line in lines:
            thread, _, number = line.rpartition(" ")
            assert last.get(thread, 0) + 1 == int(number)
            last[thread] = int(number)
    assert node.query("SELECT DISTINCT status FROM messages") == [("read",)]
