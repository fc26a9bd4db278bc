"""The timeline of a contract, from its facts: who did what, when and why (design §7)."""

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from schemas.contract import TimelineStep
from schemas.facts import (
    Fact,
    ImplementationFact,
    ReceiptFact,
    ResponseFact,
    VerificationFact,
    VersionFact,
)
from server.domain.contract import Facts

_STEPS: dict[str, TimelineStep] = {
    "agree": "agreed",
    "request_change": "change_requested",
    "reject": "rejected",
    "success": "verified",
    "failure": "failed",
    "partial": "partly_verified",
}
SHOWN = ("side", "outcome", "commit", "tool", "target", "command", "cases", "exitCode", "dirty")
"""What a timeline tells of a receipt; its runner is the agent."""
_ORDER = {step: place for place, step in enumerate(get_args(TimelineStep))}


class ContractEvent(NamedTuple):
    """One step. `at` is a stamp; `round` is None for steps outside rounds."""

    at: int
    step: TimelineStep
    version: int
    round: int | None
    repo_id: str
    agent_id: str
    note: str | None
    details: Any = None


def timeline_of(facts: Facts) -> list[ContractEvent]:
    """Every step in the facts, oldest first. They hold only the latest of a repo's responses to one
    version, and of its work in one round."""
    entries = [entry for fact in facts.values() for entry in _entries(fact)]
    # All facts of one call of a foreign peer have one stamp; the rest of the key orders them the
    # same on every node.
    return sorted(
        entries,
        key=lambda entry: (
            entry.at,
            entry.version,
            entry.round or 0,
            _ORDER[entry.step],
            entry.repo_id,
            entry.agent_id,
        ),
    )


def _entries(fact: Fact) -> Iterator[ContractEvent]:
    if isinstance(fact, VersionFact):
        step: TimelineStep = "updated" if fact.parent else "proposed"
        yield _entry(fact, fact.stamp, step, None, fact.note)
    elif isinstance(fact, ResponseFact):
        yield _entry(
            fact, fact.stamp, _STEPS[fact.action], None, fact.comment, fact.suggested_change
        )
    elif isinstance(fact, ImplementationFact):
        if fact.started_at and fact.started_at != fact.completed_at:
            yield _entry(fact, fact.started_at, "started", fact.round, fact.plan)
        if fact.status == "complete":
            yield _entry(fact, fact.stamp, "completed", fact.round, fact.notes, list(fact.files))
        elif fact.status == "needs_revision":
            yield _entry(fact, fact.stamp, "needs_revision", fact.round, fact.notes)
    elif isinstance(fact, VerificationFact):
        yield _entry(fact, fact.stamp, _STEPS[fact.result], fact.round, fact.notes, fact.details)
    elif isinstance(fact, ReceiptFact):
        passed = fact.receipt.get("outcome") == "passed"
        shown = {name: fact.receipt[name] for name in SHOWN if name in fact.receipt}
        taken: TimelineStep = "receipt_passed" if passed else "receipt_failed"
        yield _entry(fact, fact.stamp, taken, fact.round, None, shown)


def _entry(
    fact: VersionFact | ResponseFact | ImplementationFact | VerificationFact | ReceiptFact,
    at: int,
    step: TimelineStep,
    round: int | None,
    note: str | None,
    details: Any = None,
) -> ContractEvent:
    return ContractEvent(
        at, step, fact.version, round, fact.repo_id, fact.agent_id, note or None, details or None
    )
