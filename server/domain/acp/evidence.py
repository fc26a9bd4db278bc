"""Evidence that tests pass, in handoffs: what is to be believed of it (design-next N2).

A package says `test_status: passing`. Its evidence are commands, which the receiver runs again, and
receipts, which its node knows or not. A sender's own exit codes are word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from schemas.handoff_evidence import EvidenceStanding

CommandOutcome = Literal["unchecked", "held", "failed", "not_run"]
ReceiptWorth = Literal["proves", "unproven", "unknown"]


class RecordedCheck(NamedTuple):
    """What came of the commands of a package when they were run at the receiver's: for each, in
    order, a HandoffCommandRun. `at` is a stamp."""

    checked_by: str
    at: int
    commands: Sequence[Mapping[str, Any]]


class EvidenceProblem(NamedTuple):
    """Why the evidence doesn't hold: `reason` for programs, `why` for people and models."""

    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class EvidenceFinding:
    """What is to be believed of a package's evidence, and the outcome of each command."""

    standing: EvidenceStanding
    commands: tuple[CommandOutcome, ...]
    problem: EvidenceProblem | None


def finding_of(
    handoff_id: str,
    work_state: Mapping[str, Any],
    receipts: Sequence[ReceiptWorth],
    check: RecordedCheck | None,
) -> EvidenceFinding | None:
    """What the evidence of a package comes to; None where it doesn't say that tests pass.
    `receipts` are the outcomes of those that it names, in order."""
    if work_state.get("test_status") != "passing":
        return None
    evidence = work_state.get("test_evidence") or {}
    commands = outcomes(evidence.get("commands") or (), check)
    problem = _problem(handoff_id, commands, receipts)
    return EvidenceFinding(_standing(commands, receipts, problem), commands, problem)


def outcomes(
    commands: Sequence[Mapping[str, Any]], check: RecordedCheck | None
) -> tuple[CommandOutcome, ...]:
    """The outcome of each command. A check of another number of commands is none of these."""
    if check is None or len(check.commands) != len(commands):
        return tuple("unchecked" for _ in commands)
    return tuple(
        _outcome(claimed, run) for claimed, run in zip(commands, check.commands, strict=True)
    )


def _outcome(claimed: Mapping[str, Any], run: Mapping[str, Any]) -> CommandOutcome:
    if run.get("exit_code") is None:
        return "not_run"
    return "held" if run["exit_code"] == claimed["exit_code"] == 0 else "failed"


def _problem(
    handoff_id: str, commands: Sequence[CommandOutcome], receipts: Sequence[ReceiptWorth]
) -> EvidenceProblem | None:
    """The first reason for which the evidence doesn't hold."""
    if not commands and not receipts:
        return EvidenceProblem(
            "evidence_missing",
            "the package says that tests pass and has no evidence (work_state.test_evidence); "
            "reject it, and ask its sender for evidence or for test_status 'untested'",
        )
    if "failed" in commands:
        return EvidenceProblem(
            "evidence_failed",
            "the package says that tests pass, and they failed when they were checked here; "
            f"reject it, or check again with `cacp handoff check {handoff_id}`",
        )
    if any(outcome != "held" for outcome in commands):
        return EvidenceProblem(
            "evidence_unchecked",
            "the package says that tests pass, and not all of its commands have been run here; "
            f"run `cacp handoff check {handoff_id}` in a checkout of the repository",
        )
    if any(outcome != "proves" for outcome in receipts):
        return EvidenceProblem(
            "evidence_unproven",
            "the package says that tests pass by receipts that prove nothing at this node; reject "
            "it, or wait until the node has them",
        )
    return None


def _standing(
    commands: Sequence[CommandOutcome],
    receipts: Sequence[ReceiptWorth],
    problem: EvidenceProblem | None,
) -> EvidenceStanding:
    if not commands and not receipts:
        return "word"
    if problem is None:
        return "checked" if commands else "proven"
    return "failed" if "failed" in commands else "claimed"
