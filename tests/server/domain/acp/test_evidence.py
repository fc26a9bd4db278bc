"""What is believed of evidence: nothing that the receiver's side has not seen itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.acp.evidence import RecordedCheck, finding_of

RUN: dict[str, Any] = {"command": "make test", "commit": "a" * 40, "exit_code": 0}
RECEIPT = {"contract_id": "c", "signature": "s"}
HELD: Any = {"exit_code": 0}
FAILED: Any = {"exit_code": 1}
UNTRIED: Any = {"detail": "no such commit"}


def work(commands: int = 0, receipts: int = 0) -> dict[str, Any]:
    evidence: dict[str, Any] = {}
    if commands:
        evidence["commands"] = [RUN] * commands
    if receipts:
        evidence["receipts"] = [RECEIPT] * receipts
    return {"test_status": "passing", "test_evidence": evidence or None}


def check(*runs: Any) -> RecordedCheck:
    return RecordedCheck("aid://example.com/ben", 1, runs)


@pytest.mark.parametrize(
    ("work_state", "receipts", "checked", "standing", "reason"),
    [
        (work(), (), None, "word", "evidence_missing"),
        (work(), (), check(HELD), "word", "evidence_missing"),
        (work(1), (), None, "claimed", "evidence_unchecked"),
        (work(1), (), check(HELD), "checked", None),
        (work(1), (), check(FAILED), "failed", "evidence_failed"),
        (work(1), (), check(UNTRIED), "claimed", "evidence_unchecked"),
        (work(2), (), check(HELD, HELD), "checked", None),
        (work(2), (), check(HELD), "claimed", "evidence_unchecked"),
        (work(1), (), check(HELD, HELD), "claimed", "evidence_unchecked"),
        (work(2), (), check(UNTRIED, FAILED), "failed", "evidence_failed"),
        (work(0, 1), ("proves",), None, "proven", None),
        (work(0, 1), ("unknown",), None, "claimed", "evidence_unproven"),
        (work(0, 1), ("unproven",), None, "claimed", "evidence_unproven"),
        (work(0, 2), ("proves", "unknown"), None, "claimed", "evidence_unproven"),
        (work(1, 1), ("proves",), None, "claimed", "evidence_unchecked"),
        (work(1, 1), ("proves",), check(HELD), "checked", None),
        (work(1, 1), ("unknown",), check(HELD), "claimed", "evidence_unproven"),
    ],
)
def test_what_it_comes_to(
    work_state: Any, receipts: Any, checked: Any, standing: str, reason: str | None
) -> None:
    finding = finding_of("h1", work_state, receipts, checked)
    assert finding is not None
    assert finding.standing == standing
    assert (finding.problem and finding.problem.reason) == reason


@pytest.mark.parametrize("status", ["failing", "untested", None])
def test_nothing_is_asked_of_who_claims_nothing(status: str | None) -> None:
    assert finding_of("h1", {"test_status": status}, (), None) is None
    assert finding_of("h1", {}, (), check(FAILED)) is None


OUTCOMES = st.lists(st.sampled_from(["proves", "unproven", "unknown"]), max_size=4)
RUNS = st.lists(st.sampled_from([HELD, FAILED, UNTRIED]), max_size=4)


@given(commands=st.integers(0, 4), receipts=OUTCOMES, runs=st.none() | RUNS)
def test_it_holds_only_when_all_of_it_was_seen_to_hold(
    commands: int, receipts: Any, runs: Any
) -> None:
    checked = None if runs is None else check(*runs)
    finding = finding_of("h1", work(commands, len(receipts)), receipts, checked)
    assert finding is not None
    seen = runs == [HELD] * commands if commands else True
    holds = bool(commands or receipts) and seen and all(each == "proves" for each in receipts)
    assert (finding.problem is None) == holds
    assert (finding.standing in ("checked", "proven")) == holds
    assert len(finding.commands) == commands
