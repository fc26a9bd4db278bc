"""cacp/receipt/*, and what receipts verify, on a real node (N2)."""

import time
from contextlib import closing
from typing import Any

import pytest

from peers.receipts import signed
from peers.signing import SigningKey
from schemas.base import iso
from schemas.receipt import ProofReceipt
from server.store import keys
from tests.server.methods.refusals import refused
from tests.support.located import connect
from tests.support.node import AGENT, REPO, Node
from tests.support.runner import CI, COMMIT, Runner
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team


@pytest.fixture(scope="module")
def runner(node: Node) -> Runner:
    return Runner.on(node)


@pytest.fixture
def proven(node: Node, frontend_key: str) -> Team:
    """A project whose contracts are verified by receipts."""
    return Team.on(node, frontend_key, verificationPolicy="receipt")


def status(team: Team, contract: str) -> str:
    return str(team.contract(contract)["status"])


def listed(team: Team, contract: str) -> Any:
    return team.backend("receipt/list", contractId=contract)


# --- honest work --------------------------------------------------------------------------------


def test_a_receipt_verifies_and_a_word_does_not(proven: Team, runner: Runner) -> None:
    contract = proven.implemented(commit=COMMIT)
    word = proven.frontend("implementation/verify", contractId=contract, result="success")
    backend = proven.repo_id(REPO)
    assert word.pop("note").startswith("This is recorded as your word. Version 1 is verified by")
    assert word == {
        "status": "recorded",
        "contractStatus": "implemented",
        "unproven": [{"repoId": backend, "name": REPO, "side": "provider"}],
    }
    answer = runner.proves(proven.project, contract, backend)
    assert answer == {
        "status": "recorded",
        "proves": True,
        "contractStatus": "verified",
        "unproven": [],
    }
    assert status(proven, contract) == "verified"
    again = proven.frontend("implementation/verify", contractId=contract, result="success")
    assert (again["status"], again["unproven"]) == ("verified", [])


def test_both_sides_are_asked_where_the_policy_says_so(node: Node, frontend_key: str) -> None:
    team = Team.on(node, frontend_key, verificationPolicy="receipt_both")
    contract = team.implemented(commit=COMMIT)
    runner = Runner.on(node, repo=REPO)
    first = runner.proves(team.project, contract, team.repo_id(REPO))
    assert first["contractStatus"] == "implemented"
    assert [side["side"] for side in first["unproven"]] == ["consumer"]
    other = Runner.on(node, projects=[team.project])
    frontend = team.repo_id(FRONTEND)
    assert other.proves(team.project, contract, frontend, side="consumer")["unproven"] == []
    assert status(team, contract) == "verified"


def test_a_receipt_is_recorded_once(proven: Team, runner: Runner) -> None:
    contract = proven.implemented(commit=COMMIT)
    receipt = runner.receipt(proven.project, contract, proven.repo_id(REPO))
    first = runner.records(proven.project, receipt)
    assert runner.records(proven.project, receipt) == first
    assert len(listed(proven, contract)["receipts"]) == 1


def test_any_verified_caller_may_bring_a_receipt(
    proven: Team, runner: Runner, frontend_key: str
) -> None:
    """What counts is who signed it."""
    contract = proven.implemented(commit=COMMIT)
    receipt = runner.receipt(proven.project, contract, proven.repo_id(REPO))
    answer = runner.records(proven.project, receipt, key=frontend_key)
    assert answer["contractStatus"] == "verified"


def test_a_result_may_bring_its_receipt(proven: Team, runner: Runner) -> None:
    contract = proven.implemented(commit=COMMIT)
    backend = proven.repo_id(REPO)
    receipt = runner.receipt(proven.project, contract, backend)
    result = {"contractId": contract, "result": "success", "receipt": receipt.wire()}
    answer = proven.frontend("implementation/verify", **result)
    assert (answer["status"], answer["contractStatus"]) == ("verified", "verified")
    failed = runner.receipt(
        proven.project, contract, backend, outcome="regression", exit_code=1, command="make all"
    )
    with refused(-32602, "invalid_params", path="receipt.outcome"):
        proven.frontend("implementation/verify", **result | {"receipt": failed.wire()})
    assert len(listed(proven, contract)["receipts"]) == 1
    broken = result | {"receipt": failed.wire(), "result": "failure"}
    answer = proven.frontend("implementation/verify", **broken)
    assert answer == {"status": "failed", "contractStatus": "agreed"}


def test_receipts_are_listed_with_what_they_prove(proven: Team, runner: Runner) -> None:
    contract = proven.implemented(commit=COMMIT)
    backend = proven.repo_id(REPO)
    before = listed(proven, contract)
    assert before == {
        "contractId": contract,
        "version": 1,
        "digest": before["digest"],
        "round": 1,
        "verificationPolicy": "receipt",
        "contractStatus": "implemented",
        "receipts": [],
        "unproven": [{"repoId": backend, "name": REPO, "side": "provider"}],
    }
    receipt = runner.receipt(proven.project, contract, backend, cases=12)
    runner.records(proven.project, receipt)
    [shown] = listed(proven, contract)["receipts"]
    assert shown.pop("recordedAt")
    assert shown == {"receipt": receipt.wire(), "name": REPO, "node": AGENT, "proves": True}
    proven.frontend("implementation/verify", contractId=contract, result="failure")
    [shown] = listed(proven, contract)["receipts"]
    assert not shown["proves"]
    assert "round 1, and round 2 is current" in shown["problem"]


def test_receipts_are_in_the_timeline_and_the_events(proven: Team, runner: Runner) -> None:
    contract = proven.implemented(commit=COMMIT)
    backend = proven.repo_id(REPO)
    runner.proves(proven.project, contract, backend)
    last = proven.backend("contract/timeline", contractId=contract)["timeline"][-1]
    assert (last["step"], last["agentId"], last["name"]) == ("receipt_passed", CI, REPO)
    assert last["details"] == {
        "side": "provider",
        "outcome": "passed",
        "commit": COMMIT,
        "tool": "verify",
        "command": "make test",
        "exitCode": 0,
        "dirty": False,
    }
    changes = proven.backend("activity/list", kinds=["receipt", "contract"], limit=2)["changes"]
    assert {change["kind"]: change["outcome"] for change in changes} == {
        "receipt": "passed",
        "contract": "verified",
    }


def test_by_word_a_receipt_is_evidence_and_decides_nothing(team: Team, runner: Runner) -> None:
    contract = team.implemented()
    answer = runner.proves(team.project, contract, team.repo_id(REPO))
    assert answer == {
        "status": "recorded",
        "proves": True,
        "contractStatus": "implemented",
        "unproven": [],
    }
    word = team.frontend("implementation/verify", contractId=contract, result="success")
    assert word == {"status": "verified", "contractStatus": "verified"}


def test_whoever_completes_without_a_commit_is_told(proven: Team, team: Team) -> None:
    contract = proven.agreed()
    answer = proven.backend("implementation/complete", contractId=contract)
    assert "call it again with `commit`" in answer["note"]
    named = proven.backend("implementation/complete", contractId=contract, commit=COMMIT)
    assert "note" not in named
    works = proven.contract(contract)["implementations"]
    assert [work["commit"] for work in works] == [COMMIT]
    assert "note" not in team.backend("implementation/complete", contractId=team.agreed())
    with refused(-32602, "invalid_params"):
        proven.backend("implementation/complete", contractId=contract, commit="HEAD")


@pytest.mark.parametrize(
    ("policy", "evidence"),
    [
        ("receipt", {REPO: "receipt", FRONTEND: "word"}),
        ("receipt_both", {REPO: "receipt", FRONTEND: "receipt"}),
    ],
)
def test_the_matrix_tells_proof_from_word(
    node: Node, frontend_key: str, runner: Runner, policy: str, evidence: dict[str, str]
) -> None:
    team = Team.on(node, frontend_key, verificationPolicy=policy)
    contract = team.implemented(commit=COMMIT)
    ids = {name: team.repo_id(name) for name in evidence}
    team.frontend("implementation/verify", contractId=contract, result="success")
    assert cells(team, ids) == {REPO: "word", FRONTEND: "word"}
    runner.proves(team.project, contract, ids[REPO])
    if policy == "receipt_both":
        runner.proves(team.project, contract, ids[FRONTEND], side="consumer")
    assert status(team, contract) == "verified"
    assert cells(team, ids) == evidence


def cells(team: Team, ids: dict[str, str]) -> dict[str, str]:
    """On what the cell of each repo rests. A receipt is nobody's word."""
    [row] = team.backend("project/matrix")["contracts"]
    by_id = {cell["repoId"]: cell for cell in row["cells"]}
    assert not any("by" in cell for cell in row["cells"] if cell["evidence"] == "receipt")
    return {name: by_id[repo_id]["evidence"] for name, repo_id in ids.items()}


# --- lies ---------------------------------------------------------------------------------------


@pytest.fixture
def built(proven: Team) -> str:
    return proven.implemented(commit=COMMIT)


def day_ahead() -> str:
    return iso(time.time_ns() // 1000 + 86_400_000_000)


def day_before() -> str:
    return iso(time.time_ns() // 1000 - 86_400_000_000)


LIES: dict[str, dict[str, Any]] = {
    "receipt_digest": {"digest": "0" * 64},
    "receipt_version": {"version": 2},
    "receipt_commit": {"commit": "f" * 40},
    "receipt_round": {"round": 2},
    "receipt_side": {"side": "consumer"},
    "receipt_repo": {"repo": "nobody"},
    "receipt_dirty": {"dirty": True},
    "receipt_mock": {"target": "mock", "tool": "probe"},
    "receipt_contract": {"contract_id": "another"},
    "receipt_other_runner": {"runner": "aid://example.com/trusted@1.0.0"},
}


@pytest.mark.parametrize("reason", LIES)
def test_a_lie_is_refused_by_its_condition(
    proven: Team, runner: Runner, built: str, reason: str
) -> None:
    run = runner.run(proven.project, built, proven.repo_id(REPO))
    check_refused(
        proven, runner, built, signed(run.model_copy(update=LIES[reason]), KEY(runner)), reason
    )


def KEY(runner: Runner) -> SigningKey:
    return runner.keys.signing


def check_refused(
    team: Team, runner: Runner, contract: str, receipt: ProofReceipt, reason: str
) -> None:
    at = {"projectId": team.project, "contractId": contract}
    code = -32003 if "runner" in reason else -32004
    with refused(code, reason):
        team.node.call("cacp/receipt/record", key=runner.keys.api_key, **at, receipt=receipt.wire())
    assert status(team, contract) == "implemented"
    assert listed(team, contract)["receipts"] == []


@pytest.mark.parametrize(
    ("started", "reason"), [(day_ahead, "receipt_future"), (day_before, "receipt_early")]
)
def test_a_runners_clock_must_be_about_right(
    proven: Team, runner: Runner, built: str, started: Any, reason: str
) -> None:
    receipt = runner.receipt(proven.project, built, proven.repo_id(REPO), started_at=started())
    check_refused(proven, runner, built, receipt, reason)


def test_a_receipt_that_was_edited_is_refused(proven: Team, runner: Runner, built: str) -> None:
    failed = runner.receipt(
        proven.project, built, proven.repo_id(REPO), outcome="regression", exit_code=1
    )
    edited = failed.model_copy(update={"outcome": "passed", "exit_code": 0})
    check_refused(proven, runner, built, edited, "receipt_edited")


def test_only_a_registered_runner_of_the_repo_and_project_counts(
    proven: Team, team: Team, node: Node, runner: Runner, built: str
) -> None:
    backend = proven.repo_id(REPO)
    run = runner.run(proven.project, built, backend)
    stranger = signed(run, SigningKey(bytes(32)))
    check_refused(proven, runner, built, stranger, "receipt_unknown_runner")
    others = Runner.on(node, repo=FRONTEND)
    other_repo = others.receipt(proven.project, built, backend)
    check_refused(proven, runner, built, other_repo, "receipt_runner_repo")
    narrow = Runner.on(node, projects=[team.project])
    other_project = signed(run, narrow.keys.signing)
    check_refused(proven, runner, built, other_project, "receipt_runner_project")
    with closing(connect(node.db)) as db:
        keys.revoke(db, others.key_id, now=time.time_ns() // 1000)
    revoked = signed(others_run(run, others), others.keys.signing)
    check_refused(proven, runner, built, revoked, "receipt_revoked_runner")


def others_run(run: Any, runner: Runner) -> Any:
    return run.model_copy(update={"runner": runner.keys.agent_id})


def test_what_was_right_before_reopening_proves_nothing_after(
    proven: Team, runner: Runner, built: str
) -> None:
    receipt = runner.receipt(proven.project, built, proven.repo_id(REPO))
    runner.records(proven.project, receipt)
    proven.frontend("implementation/verify", contractId=built, result="failure")
    for agent in (proven.backend, proven.frontend):
        agent("implementation/complete", contractId=built, commit=COMMIT)
    with refused(-32004, "receipt_round"):
        runner.records(proven.project, receipt)
    assert status(proven, built) == "implemented"


def test_who_built_it_can_not_verify_it_where_another_must(node: Node, frontend_key: str) -> None:
    team = Team.on(node, frontend_key, verificationPolicy="independent")
    contract = team.implemented(commit=COMMIT)
    backend = team.repo_id(REPO)
    own = Runner.on(node, agent=AGENT.replace("@1.0.0", "@2.0.0"))
    receipt = own.receipt(team.project, contract, backend)
    check_refused(team, own, contract, receipt, "receipt_self")
    partner = Runner.on(node, agent=FRONTEND_AGENT)
    assert partner.proves(team.project, contract, backend)["contractStatus"] == "verified"


def test_a_failure_is_recorded_and_ends_what_was_proven(
    proven: Team, runner: Runner, built: str
) -> None:
    backend = proven.repo_id(REPO)
    passed = runner.receipt(proven.project, built, backend)
    runner.records(proven.project, passed)
    failed = runner.proves(proven.project, built, backend, outcome="regression", exit_code=1)
    assert (failed["proves"], failed["contractStatus"]) == (False, "implemented")
    [side] = failed["unproven"]
    failure = side["failure"]
    assert (side["side"], failure["outcome"], failure["commit"]) == (
        "provider",
        "regression",
        COMMIT,
    )
    assert failure["command"] == "make test"
    with refused(-32004, "receipt_superseded"):
        runner.records(proven.project, passed)
    assert status(proven, built) == "implemented"


def test_what_waits_tells_what_would_prove_it(proven: Team, runner: Runner) -> None:
    def waiting(contract: str) -> str:
        items = proven.backend("attention/list")["items"]
        return next(str(i["summary"]) for i in items if i["subject"]["id"] == contract)

    unnamed = proven.implemented()
    assert waiting(unnamed).startswith("Name the commit of your work on contract")
    contract = proven.implemented(commit=COMMIT)
    assert waiting(contract).startswith("Prove your provider side of contract")
    backend = proven.repo_id(REPO)
    runner.proves(proven.project, contract, backend, outcome="regression", exit_code=1)
    assert "a failure stands against it, until the same run passes" in waiting(contract)


# --- who may call -------------------------------------------------------------------------------


def test_a_runner_may_record_and_read_and_nothing_else(
    proven: Team, runner: Runner, node: Node, built: str
) -> None:
    at = {"projectId": proven.project, "contractId": built}
    key = runner.keys.api_key
    assert node.call("cacp/contract/get", key=key, **at)["status"] == "implemented"
    assert node.call("cacp/receipt/list", key=key, **at)["receipts"] == []
    for method, params in {
        "cacp/implementation/verify": {"result": "success"},
        "cacp/contract/respond": {"action": "agree"},
        "cacp/implementation/complete": {"commit": COMMIT},
    }.items():
        with refused(-32003, "insufficient_trust", trust="runner"):
            node.call(method, key=key, **at, **params)


def test_who_only_reads_records_nothing(
    proven: Team, runner: Runner, node: Node, built: str
) -> None:
    receipt = runner.receipt(proven.project, built, proven.repo_id(REPO))
    known = node.key("aid://example.com/reader@1.0.0", "reader", "known")
    with refused(-32003, "insufficient_trust"):
        runner.records(proven.project, receipt, key=known)
    elsewhere = node.call("cacp/project/create", key=node.operator, name="n", objective="o")
    with refused(-32602, "not_found"):
        runner.records(elsewhere["projectId"], receipt)
