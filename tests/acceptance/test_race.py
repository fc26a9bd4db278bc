"""Two agents that act on one contract at the same time: exactly one legal history (design §7).

What the two were answered is searched for an order in which the pure domain gives the same
answers, the same change log and the same facts. One must exist.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from schemas.facts import Fact, VersionFact
from server.domain import contract as domain
from server.domain import contract_steps as steps
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.domain.contract_steps import Party
from server.domain.errors import Refusal
from server.methods.cacp.implementation import OUTCOMES
from server.store import contracts
from tests.acceptance import ledger
from tests.support.located import connect
from tests.support.node import AGENT, REPO, Node, bearer
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

ROUNDS = 50

STEPS: list[tuple[str, dict[str, Any]]] = [
    ("cacp/contract/respond", {"action": "agree"}),
    ("cacp/contract/respond", {"action": "agree", "version": 1}),
    ("cacp/contract/respond", {"action": "request_change", "comment": "paginate"}),
    ("cacp/contract/respond", {"action": "reject"}),
    ("cacp/contract/update", {"content": {"path": "/v2"}}),
    ("cacp/contract/update", {"content": {"path": "/v3"}, "version": 1}),
    ("cacp/implementation/complete", {"files": ["a.py"]}),
    ("cacp/implementation/verify", {"result": "success"}),
    ("cacp/implementation/verify", {"result": "failure"}),
]


@dataclass(frozen=True)
class Call:
    """A call that was made, and what it was answered."""

    who: Party
    method: str
    params: dict[str, Any]
    answer: dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A row of the change log."""

    at: int
    actor: str
    action: str
    outcome: str


# --- the calls ----------------------------------------------------------------------------------


@dataclass
class Agent:
    """One of the two, with a connection of its own."""

    http: httpx.Client
    who: Party

    def act(
        self,
        start: threading.Barrier,
        which: dict[str, str],
        steps: list[tuple[str, dict[str, Any]]],
        batch: bool,
    ) -> list[Call]:
        """Take these steps, one after another or in one batch, as soon as both are ready."""
        requests = [
            {"jsonrpc": "2.0", "method": method, "params": which | params, "id": number}
            for number, (method, params) in enumerate(steps)
        ]
        start.wait(30)
        if batch:
            answers = self.http.post("/", json=requests).json()
        else:
            answers = [self.http.post("/", json=request).json() for request in requests]
        assert [answer["id"] for answer in answers] == list(range(len(steps)))
        return [
            Call(self.who, method, which | params, answer)
            for (method, params), answer in zip(steps, answers, strict=True)
        ]


# --- the search ---------------------------------------------------------------------------------


def is_one_history(before: Facts, calls: list[Call], log: list[Change], after: Facts) -> bool:
    """Whether the calls can be put in an order that explains all answers, the log and the facts."""
    if not calls:
        return not log and before == after
    return any(
        is_one_history(facts, [*calls[:place], *calls[place + 1 :]], rest, after)
        for place, call in enumerate(calls)
        for facts, rest in explained(before, call, log)
    )


def explained(facts: Facts, call: Call, log: list[Change]) -> list[tuple[Facts, list[Change]]]:
    """Facts and log after `call`, if what it was answered is right at this point; else nothing."""
    stamp = log[0].at if log else 0
    try:
        joined = domain.join(facts, step(facts, call, stamp))
    except Refusal as refusal:
        data = call.answer.get("error", {}).get("data")
        return [(facts, log)] if data == refusal.data else []
    status = domain.status_of(joined)
    change = Change(stamp, call.who.agent_id, call.method, status)
    right = decided(call) == result(call, joined, status)
    if joined == facts:
        # It says again what stands: that is no change.
        return [(facts, log)] if right else []
    return [(joined, log[1:])] if right and log and log[0] == change else []


def decided(call: Call) -> Any:
    """The part of an answer that follows from the order of the calls."""
    answer = call.answer.get("result")
    if call.method != "cacp/contract/update" or answer is None:
        return answer
    return {name: answer[name] for name in ("contractId", "version", "status")}


def step(facts: Facts, call: Call, stamp: int) -> list[Fact]:
    """The facts that a call adds. Raises Refusal."""
    params = call.params
    if call.method == "cacp/implementation/complete":
        files = tuple(params["files"])
        return [steps.implement(facts, call.who, "complete", stamp, files=files)]
    if call.method == "cacp/implementation/verify":
        return steps.verify(facts, call.who, params["result"], stamp)
    steps.check_version(facts, params.get("version"))
    if call.method == "cacp/contract/respond":
        comment = params.get("comment")
        return [steps.respond(facts, call.who, params["action"], stamp, comment=comment)]
    parties = domain.current_of(facts).parties
    content = params["content"]
    return [steps.update(facts, call.who, content, digest(content), parties, stamp)]


def result(call: Call, facts: Facts, status: str) -> dict[str, Any]:
    """What a call answers that led to these facts."""
    params, version = call.params, domain.current_of(facts).version
    if call.method == "cacp/contract/update":
        return {"contractId": params["contractId"], "version": version, "status": status}
    if call.method == "cacp/contract/respond":
        answer = steps.outcome_of(params["action"], domain.status_of(facts))
        shown = {"contractStatus": status, "contractVersion": version}
        return {"status": answer, "version": version} | shown
    done = OUTCOMES[params["result"]] if "result" in params else "complete"
    return {"status": done, "contractStatus": status}


# --- the race -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [False, True], ids=["one by one", "in batches"])
def test_two_agents_at_once_make_one_legal_history(tmp_path: Path, batch: bool) -> None:
    dice = Random(batch)
    with Node(tmp_path) as node, ThreadPoolExecutor(2) as threads, ExitStack() as stack:
        team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
        parties = {
            None: Party(team.repo_id(REPO), AGENT),
            team.key: Party(team.repo_id(FRONTEND), FRONTEND_AGENT),
        }
        agents = [
            Agent(stack.enter_context(httpx.Client(base_url=node.url, headers=bearer(key))), who)
            for key, who in parties.items()
        ]
        begin: list[Callable[[], str]] = [team.proposed, team.agreed, team.implemented]
        for _ in range(ROUNDS):
            race(team, dice.choice(begin)(), agents, threads, dice, batch)
        node.stop()
        ledger.check(node.db)


def race(
    team: Team,
    contract: str,
    agents: list[Agent],
    threads: ThreadPoolExecutor,
    dice: Random,
    batch: bool,
) -> None:
    """Let both take a few steps at once, and look for the history that they made."""
    before, logged = facts_and_log(team.node, contract)
    start = threading.Barrier(2)
    which = {"projectId": team.project, "contractId": contract}
    acting = [
        threads.submit(agent.act, start, which, dice.choices(STEPS, k=dice.randint(1, 3)), batch)
        for agent in agents
    ]
    calls = [call for one in acting for call in one.result(60)]
    after, log = facts_and_log(team.node, contract)
    assert is_one_history(before, calls, log[len(logged) :], after), (calls, log, after)
    assert team.contract(contract)["status"] == domain.status_of(after)


def facts_and_log(node: Node, contract: str) -> tuple[Facts, list[Change]]:
    rows = node.query(
        "SELECT at, actor, action, outcome FROM changes WHERE entity_id = ? ORDER BY seq", contract
    )
    with closing(connect(node.db)) as db:
        return contracts.facts_of(db, contract), [Change(*row) for row in rows]


def test_the_search_tells_a_history_that_can_not_be() -> None:
    """Logged twice but said once, answered but not logged, logged but not kept."""
    author, other = Party("r1", "aid://a.example/a@1"), Party("r2", "aid://b.example/b@1")
    content = {"path": "/v1"}
    first = VersionFact(
        version=1,
        digest=digest(content),
        stamp=1,
        content=content,
        repo_id=author.repo_id,
        agent_id=author.agent_id,
        parties=(author.repo_id, other.repo_id),
        policy="any",
    )
    before = domain.join({}, [first])
    after = domain.join(before, [steps.respond(before, other, "agree", 2)])
    agreed = {"status": "agreed", "version": 1, "contractStatus": "agreed", "contractVersion": 1}
    call = Call(other, "cacp/contract/respond", {"action": "agree"}, {"result": agreed})
    change = Change(2, other.agent_id, call.method, "agreed")
    assert is_one_history(before, [call], [change], after)
    assert is_one_history(before, [call, call], [change], after)
    assert not is_one_history(before, [call, call], [change, change], after)
    assert not is_one_history(before, [call], [], after)
    assert not is_one_history(before, [call], [change], before)
