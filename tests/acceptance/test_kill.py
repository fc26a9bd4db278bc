"""kill -9 amid writes: what was acknowledged is there, and nothing is half-written (design §3)."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.acceptance import ledger
from tests.support.node import Node, RpcError, bearer
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team
from tests.support.waiting import PATIENCE

CLIENTS = 8
WRITES = 5_000
ROUNDS = 20


@dataclass
class Acked:
    """What one client was told, and so may rely on."""

    contracts: dict[str, int] = field(default_factory=dict)
    """The newest stage that each contract is known to have reached (see STAGES)."""
    packets: list[str] = field(default_factory=list)
    retried: dict[str, str] = field(default_factory=dict)
    """What a call with an Idempotency-Key was answered, by its key."""
    asked: str | None = None
    """The last key that was sent; whether that call was taken, nobody may have heard."""
    writes: int = 0


class Tally:
    """Counts what all clients were acknowledged; `reached` once it is `enough`."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.count = 0
        self.lock = threading.Lock()
        self.reached = threading.Event()

    def add(self) -> None:
        with self.lock:
            self.count += 1
            if self.count == self.enough:
                self.reached.set()


STAGES: list[tuple[str, str, dict[str, Any]]] = [
    ("frontend", "contract/respond", {"action": "request_change", "comment": "paginate"}),
    ("backend", "contract/update", {"content": {"path": "/v2"}, "changeNote": "paginated"}),
    ("frontend", "contract/respond", {"action": "agree"}),
    ("backend", "implementation/complete", {"files": ["a.py"]}),
    ("frontend", "implementation/complete", {"files": ["a.ts"]}),
    ("frontend", "implementation/verify", {"result": "success"}),
]
"""What is called after the proposal, in this order; each adds one fact and one change."""


class Client(threading.Thread):
    """Writes one call after another until the node is gone; remembers what it acknowledged."""

    def __init__(self, team: Team, number: int, tally: Tally) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.team = team
        self.dice = Random(number)
        self.tally = tally
        self.acked = Acked()
        self.wrong: Exception | None = None

    def run(self) -> None:
        with httpx.Client(base_url=self.team.node.url, timeout=PATIENCE, trust_env=False) as http:
            while True:
                try:
                    self.step(http)
                except httpx.TransportError:
                    return
                except Exception as error:
                    self.wrong = error
                    self.tally.reached.set()
                    return

    def step(self, http: httpx.Client) -> None:
        which = self.dice.random()
        open_ = [one for one, stage in self.acked.contracts.items() if stage < len(STAGES)]
        if which < 0.15:
            content = {"text": "x" * self.dice.randrange(20_000)}
            shared = self.call(http, "backend", "context/share", type="api_spec", content=content)
            self.acked.packets.append(shared["packetId"])
        elif which < 0.25:
            key = f"{self.team.project}-{self.name}-{self.acked.writes}"
            self.acked.asked = key
            made = self.call(http, "frontend", "contract/propose", key, **PROPOSAL)
            self.acked.retried[key] = made["contractId"]
        elif which < 0.5 or not open_:
            made = self.call(http, "backend", "contract/propose", **PROPOSAL)
            self.acked.contracts[made["contractId"]] = 0
        else:
            contract = self.dice.choice(open_)
            who, method, params = STAGES[self.acked.contracts[contract]]
            self.call(http, who, method, contractId=contract, **params)
            self.acked.contracts[contract] += 1

    def call(
        self, http: httpx.Client, who: str, method: str, key: str | None = None, **params: Any
    ) -> Any:
        headers = bearer(self.team.key if who == "frontend" else None)
        if key is not None:
            headers["idempotency-key"] = key
        request = {
            "jsonrpc": "2.0",
            "method": f"cacp/{method}",
            "params": {"projectId": self.team.project, **params},
            "id": self.name,
        }
        answer = http.post("/", json=request, headers=headers).json()
        if "error" in answer:
            error = answer["error"]
            raise RpcError(error["code"], error["message"], error.get("data"))
        self.acked.writes += 1
        self.tally.add()
        return answer["result"]


PROPOSAL: dict[str, Any] = {
    "type": "api_endpoint",
    "name": "Get User Profile",
    "content": {"method": "GET", "path": "/users"},
}


def kill_amid_writes(team: Team, after: int) -> list[Acked]:
    """Let clients write; kill the node once `after` writes are acknowledged, amid the next."""
    tally = Tally(after)
    clients = [Client(team, number, tally) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    assert tally.reached.wait(120)
    team.node.kill()
    for client in clients:
        client.join(60)
        assert not client.is_alive()
        assert client.wrong is None, client.wrong
    return [client.acked for client in clients]


def check_over_http(team: Team, every: list[Acked]) -> None:
    """Every acknowledged write can be read, and every retry is answered as it was."""
    project = team.backend("project/get")
    found = {one["contract_id"]: one for one in project["contracts"]}
    packets = {one["packet_id"] for one in project["context_history"]}
    for acked in every:
        assert packets.issuperset(acked.packets)
        for contract, stage in acked.contracts.items():
            assert found[contract]["version"] >= (2 if stage >= 2 else 1)
            if stage == len(STAGES):
                assert found[contract]["status"] == "verified"
        for key, contract in list(acked.retried.items())[:5]:
            assert contract in found
            assert retry(team, key) == contract
        if acked.asked is not None:
            assert retry(team, acked.asked) == retry(team, acked.asked)


def retry(team: Team, key: str) -> str:
    client = Client(team, 0, Tally(0))
    made = client.call(team.node.http, "frontend", "contract/propose", key, **PROPOSAL)
    return str(made["contractId"])


def check_in_the_file(team: Team, every: list[Acked]) -> None:
    """Every acknowledged step left its fact, and its row in the change log."""
    rows = team.node.query("SELECT contract_id, count(*) FROM facts GROUP BY contract_id")
    facts: dict[str, int] = dict(rows)
    logged = team.node.query("SELECT entity_id, count(*) FROM changes GROUP BY entity_id")
    changes: dict[str, int] = dict(logged)
    for acked in every:
        for contract, stage in acked.contracts.items():
            assert facts[contract] > stage
            assert changes[contract] == facts[contract]
        assert all(changes[one] == 1 for one in [*acked.packets, *acked.retried.values()])


def one_round(team: Team, after: int) -> int:
    """Kill, check the file as it was left, start again, look for each write; how many they are."""
    every = kill_amid_writes(team, after)
    ledger.check(team.node.db)
    team.node.start()
    check_over_http(team, every)
    check_in_the_file(team, every)
    return sum(acked.writes for acked in every)


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
        assert one_round(team, 500) >= 500
        ledger.check(node.db)


@pytest.mark.soak
def test_what_was_acknowledged_survives_twenty_kills(tmp_path: Path) -> None:
    """5,000 writes by 8 clients, killed at a point that differs each time, on one file."""
    dice = Random(2)
    acked, began = 0, time.monotonic()
    with Node(tmp_path) as node:
        key = node.key(FRONTEND_AGENT, FRONTEND)
        for number in range(ROUNDS):
            after = dice.randrange(WRITES // 10, WRITES)
            count = one_round(Team.on(node, key), after)
            acked += count
            print(f"round {number + 1}: killed after {count} writes, none lost")
        ledger.check(node.db)
    print(f"{ROUNDS} kills, {acked} writes, 0 lost, {time.monotonic() - began:.0f} s")
