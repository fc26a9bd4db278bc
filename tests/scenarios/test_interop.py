"""The whole job with a foreign peer that has the reference's habits, whatever its clock says.

Nothing is lost and nothing said twice, in both directions (design §8).
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from schemas.base import stamp_of
from tests.support.foreign_peer import AGENT, REPO, ForeignPeerDouble
from tests.support.mesh import CONTENT, holds, peers, propose
from tests.support.node import AGENT as OURS
from tests.support.node import Node
from tests.support.waiting import eventually

SKEWS = (-5, 0, 3, 3_600)
WALKS = 50
AT_ONCE = 4
Place = dict[str, str]


class Walk:
    """One project of a node and a foreign peer, from its first agreement to its verification."""

    def __init__(self, node: Node, double: ForeignPeerDouble) -> None:
        self.node = node
        self.double = double
        self.project = ""

    def theirs_first(self) -> None:
        """The peer makes the project and proposes; we join, agree and build."""
        self.project = self.double.create(self.node.url, "alpha")
        eventually(lambda: holds(self.node, self.project))
        self.node.call("cacp/project/join", projectId=self.project, repoName="alpha")
        eventually(lambda: self.agent_of("alpha") == OURS)
        contract = self.double.propose(self.node.url, self.project, CONTENT)
        self.comes(contract, "proposed")
        self.agree(contract)
        eventually(lambda: self.their_status(contract) == "agreed")
        self.build(contract)
        self.node.call("cacp/implementation/verify", **self.place(contract), result="success")
        eventually(lambda: self.their_status(contract) == "verified")
        self.check(contract, {"version": 1, "response": 1, "verification": 1})

    def ours_first(self) -> None:
        """We make the project and propose; the peer joins, asks for a change, agrees, builds,
        verifies."""
        repos = [
            {"name": name, "role": "service", "language": "python"} for name in ("alpha", REPO)
        ]
        made = self.node.call("cacp/project/create", name="Ours", objective="o", repos=repos)
        self.project = str(made["projectId"])
        self.node.call("cacp/project/join", projectId=self.project, repoName="alpha")
        eventually(lambda: self.project in self.double.projects)
        # Skipped, if we have read it of its project before.
        assert "result" in self.double.join(self.node.url, self.project)
        contract = propose(self.node, self.project)
        eventually(lambda: self.their_status(contract) == "proposed")
        self.change(contract, status="negotiating")
        self.comes(contract, "negotiating")
        self.node.call("cacp/contract/update", **self.place(contract), content=CONTENT | {"v": 2})
        eventually(lambda: (self.double.contract(self.project, contract) or {})["version"] == 2)
        self.change(contract, status="agreed")
        self.comes(contract, "agreed")
        self.build(contract)
        self.change(contract, status="verified")
        self.comes(contract, "verified")
        self.check(contract, {"version": 2, "response": 2, "verification": 1})

    def build(self, contract: str) -> None:
        """Both build it, and talk, at the same time: neither waits for the other's word."""
        own = self.double.own_repo(self.project)["repo_id"]
        begun = {"repo_id": own, "agent_id": AGENT, "status": "in_progress", "plan": "a screen"}
        done = begun | {"status": "complete", "files": ["Screen.swift"]}

        def ours() -> None:
            self.node.call("cacp/implementation/start", **self.place(contract), plan="a route")
            self.node.call("cacp/context/askQuestion", projectId=self.project, question="Which?")
            files = ["route.py"]
            self.node.call("cacp/implementation/complete", **self.place(contract), files=files)

        def theirs() -> None:
            self.double.work(self.node.url, self.project, contract, begun)
            self.double.say(self.node.url, self.project, f"p-{self.project}", {"question": "Why?"})
            self.double.work(self.node.url, self.project, contract, done)

        with ThreadPoolExecutor() as both:
            for one in [both.submit(ours), both.submit(theirs)]:
                one.result()
        self.comes(contract, "implemented")
        eventually(lambda: len(self.works(contract)) == 2)
        # It finds by itself that all is complete only where it was the last to complete.
        eventually(lambda: self.their_status(contract) == "implemented")
        eventually(lambda: len(self.double.projects[self.project]["context_history"]) == 2)

    def change(self, contract: str, **members: Any) -> None:
        """A step of the peer's agent, once what we sent is taken."""
        answer = self.double.change(self.node.url, self.project, contract, **members)
        assert "result" in answer, answer

    def agree(self, contract: str) -> None:
        self.node.call("cacp/contract/respond", **self.place(contract), action="agree")

    def place(self, contract: str) -> Place:
        return {"projectId": self.project, "contractId": contract}

    def agent_of(self, repo: str) -> str | None:
        found = [one for one in self.double.repos(self.project) if one["name"] == repo]
        assert len(found) == 1, "the peer has each repo once"
        return found[0].get("assigned_agent")

    def their_status(self, contract: str) -> str | None:
        return (self.double.contract(self.project, contract) or {}).get("status")

    def works(self, contract: str) -> dict[str, str]:
        found = self.double.contract(self.project, contract) or {"implementations": []}
        assert len({one["repo_id"] for one in found["implementations"]}) == len(
            found["implementations"]
        )
        return {one["repo_id"]: one["status"] for one in found["implementations"]}

    def comes(self, contract: str, status: str) -> None:
        def held() -> bool:
            found = self.node.query("SELECT status FROM contracts WHERE contract_id = ?", contract)
            return [row[0] for row in found] == [status]

        eventually(held)

    def check(self, contract: str, kinds: dict[str, int]) -> None:
        """Both sides hold the same, each thing once, and our clock has not moved."""
        ours = self.node.call("cacp/contract/get", **self.place(contract))
        theirs = self.double.contract(self.project, contract)
        assert theirs is not None
        for member in ("version", "status", "content"):
            assert theirs[member] == ours[member]
        names = {one["repo_id"]: one["name"] for one in self.double.repos(self.project)}
        assert sorted(names.values()) == ["alpha", REPO]
        assert set(self.works(contract)) == set(names)
        said = self.node.call("cacp/context/list", projectId=self.project)["packets"]
        shown = self.double.projects[self.project]["context_history"]
        assert sorted(one["packet_id"] for one in said) == sorted(one["packet_id"] for one in shown)
        self.check_facts(contract, kinds)
        self.check_said(contract)

    def check_facts(self, contract: str, kinds: dict[str, int]) -> None:
        rows = self.node.query(
            "SELECT kind, stamp FROM facts WHERE contract_id = ? ORDER BY kind", contract
        )
        assert max(stamp for _, stamp in rows) <= time.time_ns() // 1_000 + 1_000_000
        found = {kind: [row[0] for row in rows].count(kind) for kind in kinds}
        assert found == kinds

    def check_said(self, contract: str) -> None:
        """Each time that the peer took a contract of ours, it said something new."""
        said = [
            json.dumps({k: v for k, v in params["contract"].items() if k != "updated_at"})
            for method, params in self.double.taken
            if method == "cacp/contract/sync" and params["contract"]["contract_id"] == contract
        ]
        assert len(said) == len(set(said))
        packets = [
            params["packet"]["packet_id"]
            for method, params in self.double.taken
            if method == "cacp/context/sync" and params["projectId"] == self.project
        ]
        assert len(packets) == 1


def walk(folder: Path, skew: float, walks: int) -> None:
    with (
        ForeignPeerDouble(skew=skew) as double,
        Node(folder, repo="alpha", peers=double.url, requests_per_minute=1_000_000) as node,
    ):
        eventually(lambda: len(peers(node)) == 1)
        with ThreadPoolExecutor(AT_ONCE) as running:
            jobs = [running.submit(both_ways, node, double) for _ in range(walks)]
        try:
            for job in jobs:
                job.result()
            eventually(lambda: peers(node)[0]["sync"]["backlog"] == 0)
        except BaseException:
            print(f"at {skew:+} s", node.log[-4_000:], peers(node))
            raise
        assert "Traceback" not in node.log
        assert "loop_failed" not in node.log
        updated = node.query("SELECT max(stamp) FROM packets")[0][0]
        assert updated <= stamp_of(iso_now())


def both_ways(node: Node, double: ForeignPeerDouble) -> None:
    Walk(node, double).theirs_first()
    Walk(node, double).ours_first()


def iso_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.999999", time.gmtime())


@pytest.mark.parametrize("skew", SKEWS)
def test_the_whole_job_with_a_foreign_peer(tmp_path: Path, skew: float) -> None:
    walk(tmp_path, skew, 2)


@pytest.mark.soak
@pytest.mark.parametrize("skew", SKEWS)
def test_fifty_jobs_with_a_foreign_peer(tmp_path: Path, skew: float) -> None:
    walk(tmp_path, skew, WALKS)
