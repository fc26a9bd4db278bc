"""What a receipt proves: the conditions, and what remains to be proven."""

from dataclasses import replace
from typing import Any

import pytest

from peers.receipts import signed
from schemas.base import iso
from schemas.facts import ImplementationFact, ReceiptFact, VersionFact
from schemas.receipt import ProofReceipt
from schemas.verification import VerificationPolicy
from server.domain.canonical import digest
from server.domain.proof import (
    CLOCK_SKEW,
    ProofGround,
    ground_of,
    problem_of,
    proven,
    started_at,
    unproven,
)
from server.domain.receipts import fact_of
from tests.server.domain.histories import API, COMMITS, CONTENTS, RUNNERS, SECOND, WEB, run_of

DONE = 10_000 * SECOND
AT: dict[str, Any] = {"version": 1, "digest": digest(CONTENTS[0])}
VERSION = VersionFact(
    **AT,
    stamp=1,
    content=CONTENTS[0],
    repo_id="api",
    agent_id=API.agent_id,
    parties=("api", "web"),
    policy="any",
)
WORK = ImplementationFact(
    **AT,
    stamp=DONE,
    repo_id="api",
    agent_id=API.agent_id,
    round=1,
    status="complete",
    completed_at=DONE,
    commit=COMMITS[0],
)
OTHERS = replace(WORK, repo_id="web", agent_id=WEB.agent_id, commit=COMMITS[1])
ROLES: Any = {"api": "provider", "web": "consumer"}


def ground(policy: VerificationPolicy | None = "receipt", **work: Any) -> ProofGround:
    roles = None if policy is None else ROLES
    version = replace(VERSION, verification=policy, roles=roles)
    return ground_of([version], 1, [replace(WORK, **work), OTHERS], ROLES)


def ran(**members: Any) -> ProofReceipt:
    by = members.pop("by", 0)
    return signed(run_of(**{"started_at": iso(DONE + SECOND)} | members), RUNNERS[by])


def recorded(**members: Any) -> ReceiptFact:
    return fact_of(ran(**members), DONE + 60 * SECOND)


def reason(of: ProofGround, receipt: ProofReceipt, stamp: int = DONE + 60 * SECOND) -> str | None:
    problem = problem_of(of, receipt, stamp)
    return problem and problem.reason


def test_a_run_on_the_commit_that_is_complete_proves_its_side() -> None:
    assert reason(ground(), ran()) is None
    assert proven(ground(), [recorded()]) == {("api", "provider")}


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ({"status": "in_progress"}, "receipt_not_complete"),
        ({"status": "needs_revision"}, "receipt_not_complete"),
        ({"round": 2}, "receipt_not_complete"),
        ({"commit": None}, "receipt_no_commit"),
        ({"commit": COMMITS[1]}, "receipt_commit"),
        ({"completed_at": DONE + 3_600 * SECOND}, "receipt_early"),
        ({"completed_at": None}, None),
    ],
)
def test_it_is_held_against_what_was_declared_complete(
    work: dict[str, Any], expected: str | None
) -> None:
    assert reason(ground(**work), ran()) == expected


def test_by_word_a_receipt_is_evidence_without_a_declared_commit() -> None:
    assert reason(ground(None, commit=None), ran()) is None
    assert reason(ground(None, commit=COMMITS[1]), ran()) == "receipt_commit"
    assert unproven(ground(None), []) == []


@pytest.mark.parametrize(
    ("started", "duration", "expected"),
    [
        (DONE - CLOCK_SKEW, 0, None),
        (DONE - CLOCK_SKEW - 1, 0, "receipt_early"),
        (DONE + 60 * SECOND + CLOCK_SKEW, 0, None),
        (DONE + 60 * SECOND + CLOCK_SKEW + 1, 0, "receipt_future"),
        (DONE + 60 * SECOND, CLOCK_SKEW // 1_000, None),
        (DONE + 60 * SECOND, CLOCK_SKEW // 1_000 + 1, "receipt_future"),
    ],
)
def test_a_runners_clock_may_be_wrong_by_the_skew(
    started: int, duration: int, expected: str | None
) -> None:
    assert reason(ground(), ran(started_at=iso(started), duration=duration)) == expected


def test_a_mock_stands_for_a_provider_and_not_for_a_consumer() -> None:
    """Whose own program calls it."""
    assert reason(ground(), ran(target="mock")) == "receipt_mock"
    both = ground("receipt_both")
    consumer = ran(repo="web", side="consumer", commit=COMMITS[1], target="mock")
    assert reason(both, consumer) is None


def test_order_goes_by_the_stamps_of_nodes() -> None:
    assert reason(ground(), ran(started_at=iso(DONE)), DONE) == "receipt_early"
    assert reason(ground(), ran(started_at=iso(DONE)), DONE + 1) is None


def test_only_with_independent_the_runner_must_be_another() -> None:
    own = ran(runner="aid://example.com/api@9.0.0")
    assert reason(ground("receipt"), own) is None
    assert reason(ground("independent"), own) == "receipt_self"
    assert reason(ground("independent"), ran()) is None


def test_the_builder_is_known_by_the_canonical_form_of_its_id() -> None:
    own = ran(runner="AID://Example.COM/api@2.0.0")
    assert reason(ground("independent"), own) == "receipt_self"
    other_case = ran(runner="aid://example.com/API@2.0.0")
    assert reason(ground("independent"), other_case) is None, "of a name, the case counts"


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"exit_code": 5}, "receipt_contradicts"),
        ({"exit_code": -9}, "receipt_contradicts"),
        ({"cases": 0}, "receipt_contradicts"),
        ({"cases": 0, "exit_code": 4}, "receipt_contradicts"),
        ({"cases": 1}, None),
        ({"cases": None}, None),
        ({"cases": 0, "exit_code": 4, "outcome": "missing_capability"}, None),
        ({"exit_code": 5, "outcome": "unclassified"}, None),
    ],
)
def test_what_passed_says_nothing_else(members: dict[str, Any], expected: str | None) -> None:
    assert reason(ground(), ran(**members)) == expected
    is_passed = members.get("outcome", "passed") == "passed"
    proves = is_passed and expected is None
    assert (("api", "provider") in proven(ground(), [recorded(**members)])) == proves


def test_a_failure_of_any_runner_stands_beside_a_pass() -> None:
    passed, failed = recorded(), recorded(by=1, outcome="regression", exit_code=1)
    assert proven(ground(), [passed, failed]) == frozenset()
    assert unproven(ground(), [passed, failed]) == [("api", "provider")]
    for outcome in ("inherited_failure", "missing_capability"):
        says_nothing = recorded(by=1, outcome=outcome, exit_code=1)
        assert unproven(ground(), [passed, says_nothing]) == []
        assert unproven(ground(), [says_nothing]) == [("api", "provider")]


def test_a_failure_that_proves_nothing_disproves_nothing() -> None:
    failed = recorded(by=1, outcome="regression", exit_code=1, dirty=True)
    assert proven(ground(), [recorded(), failed]) == {("api", "provider")}


def test_what_remains_is_told_by_repo_and_side() -> None:
    both = ground("receipt_both")
    assert unproven(both, []) == [("api", "provider"), ("web", "consumer")]
    consumer = recorded(repo="web", side="consumer", commit=COMMITS[1])
    assert unproven(both, [consumer]) == [("api", "provider")]
    assert unproven(both, [consumer, recorded()]) == []


def test_a_version_beside_it_with_weaker_terms_takes_nothing_away() -> None:
    strict = replace(VERSION, verification="independent", roles=ROLES)
    weak = replace(VERSION, stamp=0)
    mixed = ground_of([weak, strict], 1, [WORK, OTHERS], ROLES)
    assert unproven(mixed, []) == [("api", "provider")]
    own = recorded(runner=API.agent_id)
    assert unproven(mixed, [own]) == [("api", "provider")]
    assert unproven(mixed, [recorded()]) == []


def test_a_run_without_a_time_is_the_oldest() -> None:
    fact = recorded()
    assert started_at(fact) == DONE + SECOND
    assert started_at(replace(fact, receipt={})) == 0
    assert started_at(replace(fact, receipt={"startedAt": "soon"})) == 0
