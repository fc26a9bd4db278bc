"""What a node makes of a package's evidence: its own knowledge, and nothing that others say."""

from typing import Any

import pytest

from tests.support.in_process_node import package
from tests.support.mail_agent import agent
from tests.support.node import AGENT, REPO, Node
from tests.support.runner import COMMIT, Runner
from tests.support.team import Team


@pytest.fixture(scope="module")
def runner(node: Node) -> Runner:
    return Runner.on(node)


@pytest.fixture
def team(node: Node, frontend_key: str) -> Team:
    return Team.on(node, frontend_key, verificationPolicy="receipt")


def evidence(node: Node, *named: Any) -> Any:
    """The evidence of a handoff that names receipts, as its receiver sees it."""
    ana, ben = agent(node, "ana"), agent(node, "ben")
    work_state = {"test_status": "passing", "test_evidence": {"receipts": list(named)}}
    given = {"to": ben.id, "reason": "r", "package": package(ana.address, work_state=work_state)}
    made = ana.call("handoff", action="initiate", **given)
    return ben.call("handoff", action="get", handoff_id=made["handoff"]["handoffId"])["evidence"]


def test_a_receipt_proves_as_long_as_it_proves_its_side(team: Team, runner: Runner) -> None:
    contract = team.implemented(commit=COMMIT)
    receipt = runner.receipt(team.project, contract, team.repo_id(REPO))
    named = {"contract_id": contract, "signature": receipt.signature}
    unknown = evidence(team.node, named)
    assert unknown["standing"] == "claimed"
    assert unknown["receipts"][0]["detail"] == (
        "this node does not know such a receipt of its current version"
    )
    runner.records(team.project, receipt)
    proven = evidence(team.node, named)
    assert proven["standing"] == "proven"
    (shown,) = proven["receipts"]
    assert (shown["outcome"], shown["contract"]) == ("proves", team.contract(contract)["name"])
    assert shown["detail"].startswith(f"passed: make test at {COMMIT[:12]}, by runner aid://")
    team.backend("implementation/verify", contractId=contract, result="failure")
    stale = evidence(team.node, named)
    assert stale["standing"] == "claimed"
    assert stale["receipts"][0]["outcome"] == "unproven"
    assert "round" in stale["receipts"][0]["detail"]


def test_a_receipt_of_a_failure_proves_nothing(team: Team, runner: Runner) -> None:
    contract = team.implemented(commit=COMMIT)
    failed = runner.receipt(
        team.project, contract, team.repo_id(REPO), exit_code=1, outcome="regression"
    )
    runner.records(team.project, failed)
    shown = evidence(team.node, {"contract_id": contract, "signature": failed.signature})
    assert shown["standing"] == "claimed"
    (receipt,) = shown["receipts"]
    assert receipt["outcome"] == "unproven"
    assert receipt["detail"].startswith("regression: make test at")


def test_a_receipt_is_of_the_contract_that_is_named(team: Team, runner: Runner) -> None:
    first, second = (team.implemented(commit=COMMIT) for _ in range(2))
    receipt = runner.receipt(team.project, first, team.repo_id(REPO))
    runner.records(team.project, receipt)
    shown = evidence(team.node, {"contract_id": second, "signature": receipt.signature})
    assert shown["receipts"][0]["outcome"] == "unknown"
    assert AGENT not in shown["receipts"][0]["detail"]
