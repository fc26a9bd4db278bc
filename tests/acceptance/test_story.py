"""Two agents with keys take a contract from project to verified; the node is killed twice on the
way, and `cacp show` and `cacp watch` tell the story."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from tests.support.node import AGENT, REPO, Node
from tests.support.team import FRONTEND, FRONTEND_AGENT, REPOS
from tests.support.waiting import PATIENCE

V1 = {"method": "GET", "path": "/api/v1/users/profile"}
V2 = V1 | {"query": {"fields": "string"}}


def cacp(node: Node, *words: str) -> subprocess.CompletedProcess[str]:
    """A `cacp` command as a shell runs it, for this node."""
    command = [sys.executable, "-m", "cli.main", *words]
    env = node.env | {"CACP_URL": node.url}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)


def key_for(node: Node, agent: str, repo: str) -> str:
    words = ["keys", "create", agent, "--repo", repo, "--create", "--json"]
    made = cacp(node, *words)
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["key"])


class Watcher:
    """`cacp watch --json`, from the first change on."""

    def __init__(self, node: Node, key: str) -> None:
        command = [sys.executable, "-m", "cli.main", "watch", "--after", "0", "--json"]
        env = node.env | {"CACP_URL": node.url, "CACP_KEY": key, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.lines: Queue[str] = Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line)

    def told(self, count: int) -> list[dict[str, Any]]:
        """The next `count` changes."""
        return [json.loads(self.lines.get(timeout=PATIENCE)) for _ in range(count)]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.reader.join(10)
        assert self.process.stdout
        self.process.stdout.close()


@dataclass
class Agent:
    """One of the two, with its key."""

    node: Node
    key: str
    project: str = ""
    contract: str = ""

    def __call__(self, method: str, **params: Any) -> Any:
        which = {"projectId": self.project} if self.project else {}
        if self.contract and not method.startswith("cacp/context"):
            which["contractId"] = self.contract
        return self.node.call(method, key=self.key, **{**which, **params})


def begin(backend: Agent, frontend: Agent) -> None:
    """A project of two repos, a contract, and a change that the other asks for."""
    made = backend("cacp/project/create", name="User Auth", objective="Login", repos=REPOS)
    backend.project = frontend.project = made["projectId"]
    frontend("cacp/project/join", repoName=FRONTEND)
    made = backend("cacp/contract/propose", type="api_endpoint", name="Get Profile", content=V1)
    backend.contract = frontend.contract = made["contractId"]
    frontend(
        "cacp/context/askQuestion",
        question="Which fields?",
        relatedContracts=[frontend.contract],
    )
    frontend("cacp/contract/respond", action="request_change", comment="Let me choose fields")
    backend("cacp/contract/update", content=V2, changeNote="fields can be chosen")


def build(backend: Agent, frontend: Agent) -> None:
    """Agreement, and both implementations."""
    frontend("cacp/contract/respond", action="agree")
    backend("cacp/implementation/start", plan="One handler")
    backend("cacp/implementation/complete", files=["profile.py"])
    frontend("cacp/implementation/complete", files=["profile.ts"])


def verify(backend: Agent, frontend: Agent) -> None:
    """It fails once; the next round works."""
    frontend("cacp/implementation/verify", result="failure", notes="404")
    backend("cacp/implementation/complete", files=["profile.py", "routes.py"])
    frontend("cacp/implementation/complete", files=["profile.ts"])
    assert frontend("cacp/implementation/verify", result="success") == {
        "status": "verified",
        "contractStatus": "verified",
    }


TOLD = [
    (AGENT, "cacp/project/create", "created"),
    (FRONTEND_AGENT, "cacp/project/join", "joined"),
    (AGENT, "cacp/contract/propose", "proposed"),
    (FRONTEND_AGENT, "cacp/context/askQuestion", "question"),
    (FRONTEND_AGENT, "cacp/contract/respond", "negotiating"),
    (AGENT, "cacp/contract/update", "proposed"),
    (FRONTEND_AGENT, "cacp/contract/respond", "agreed"),
    (AGENT, "cacp/implementation/start", "agreed"),
    (AGENT, "cacp/implementation/complete", "agreed"),
    (FRONTEND_AGENT, "cacp/implementation/complete", "implemented"),
    (FRONTEND_AGENT, "cacp/implementation/verify", "agreed"),
    (AGENT, "cacp/implementation/complete", "agreed"),
    (FRONTEND_AGENT, "cacp/implementation/complete", "implemented"),
    (FRONTEND_AGENT, "cacp/implementation/verify", "verified"),
]
"""What `cacp watch` tells, as (actor, action, outcome)."""

STEPS = [
    ("proposed", 1),
    ("change_requested", 1),
    ("updated", 2),
    ("agreed", 2),
    ("started", 2),
    ("completed", 2),
    ("failed", 2),
    ("completed", 2),
    ("verified", 2),
]
"""What `cacp show` tells of the contract, as (step, version), in this order among others."""


def test_a_contract_from_project_to_verified_over_two_kills(tmp_path: Path) -> None:
    node = Node(tmp_path)
    backend = Agent(node, key_for(node, AGENT, REPO))
    with node:
        frontend = Agent(node, key_for(node, FRONTEND_AGENT, FRONTEND))
        watcher = Watcher(node, frontend.key)
        try:
            begin(backend, frontend)
            changes = watcher.told(6)
            node.kill()
            node.start()
            build(backend, frontend)
            changes += watcher.told(4)
            node.kill()
            node.start()
            verify(backend, frontend)
            changes += watcher.told(4)
        finally:
            watcher.end()
        check_watched(changes, backend)
        check_shown(node, backend)


def check_watched(changes: list[dict[str, Any]], agent: Agent) -> None:
    """Every change once, in order, though the stream was cut off twice."""
    assert [(one["actor"], one["action"], one["outcome"]) for one in changes] == TOLD
    assert [one["seq"] for one in changes] == sorted({one["seq"] for one in changes})
    assert {one["projectId"] for one in changes} == {agent.project}
    assert len({one["id"] for one in changes}) == len(TOLD)


def check_shown(node: Node, agent: Agent) -> None:
    """The contract's whole story: versions, answers, work, what was asked, and how it ended."""
    shown = cacp(node, "show", agent.contract, "--key", agent.key, "--json")
    assert shown.returncode == 0, shown.stderr
    story = json.loads(shown.stdout)
    contract = story["contract"]
    assert (contract["status"], contract["version"], contract["content"]) == ("verified", 2, V2)
    assert [version["content"] for version in contract["history"]] == [V1]
    assert {work["status"] for work in contract["implementations"]} == {"complete"}
    assert [packet["content"]["question"] for packet in story["packets"]] == ["Which fields?"]
    steps = iter((entry["step"], entry["version"]) for entry in story["timeline"])
    assert all(step in steps for step in STEPS), story["timeline"]
    times = [entry["timestamp"] for entry in story["timeline"]]
    assert times == sorted(times)
    for_people = cacp(node, "show", agent.contract, "--key", agent.key)
    assert for_people.returncode == 0
    assert "Get Profile" in for_people.stdout
    assert "verified" in for_people.stdout
