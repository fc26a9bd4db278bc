"""A handoff for a terminal: whatever its sender writes stays on its line."""

from typing import Any, get_args

import pytest

from cli.handoff_view import MARKS, handoff_text, receipt_line, run_json, run_text
from proof.evidence import EvidenceRun
from schemas.handoff_evidence import (
    CheckedCommand,
    HandoffCommandEvidence,
    HandoffCommandRun,
    NamedReceipt,
)
from tests.support.in_process_node import ANA, BEN, package

HOSTILE = "a\x1b[2J\nb\u202ec"
CLAIMED = HandoffCommandEvidence(
    command="make test", commit="a" * 40, exit_code=0, output_digest="b" * 64
)
HANDOFF = {
    "title": HOSTILE,
    "status": "proposed",
    "fromAgent": ANA,
    "toAgent": BEN,
    "reason": HOSTILE,
    "dueAt": "2026-01-01T00:00:00.000000+00:00",
}


def answer(**evidence: Any) -> dict[str, Any]:
    work_state = {"next_step": HOSTILE, "test_status": "passing"}
    whole = package(work_state=work_state, task={"success_criteria": [HOSTILE]})
    given: dict[str, Any] = {"handoff": HANDOFF, "package": whole, "nextStep": "You may now: x."}
    known = {"standing": "claimed", "required": True, "commands": [], "receipts": []}
    return given | ({"evidence": known | evidence} if evidence else {})


def test_no_text_leaves_its_line() -> None:
    run = {"command": HOSTILE, "commit": "a" * 40, "outcome": "not_run", "detail": HOSTILE}
    receipt = {"contractId": HOSTILE, "outcome": "unknown", "detail": HOSTILE}
    shown = handoff_text(
        answer(commands=[run], receipts=[receipt], checkedBy=HOSTILE, checkedAt="2026")
    )
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.splitlines() == [
        "a bc (proposed)",
        f"  from {ANA} to {BEN}",
        "  why: a bc",
        "  task task-1, normal, in_progress",
        "  wanted: a bc",
        "  next: a bc",
        "  due 2026-01-01T00:00:00.000000+00:00",
        "  tests pass: word of its sender; not all of the evidence has been checked here, or it "
        "proves nothing",
        "    a bc",
        "      at aaaaaaaaaaaa: could not be tried here: a bc",
        "    receipt of a bc: not known to this node (a bc)",
        "    checked by a bc, 2026",
        "  You may now: x.",
    ]


def test_without_a_nodes_word_on_it_there_is_the_senders() -> None:
    assert "  tests: passing" in handoff_text(answer()).splitlines()


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"exit_code": 0, "output_digest": "b" * 64}, "passed here (its output is the same)"),
        ({"exit_code": 0, "output_digest": "c" * 64}, "passed here (its output is another)"),
        (
            {"exit_code": 2, "output_digest": "c" * 64},
            "FAILED here, with 2 (its output is another)\n  | the end",
        ),
        ({"detail": "no commit"}, "could not be tried here: no commit\n  | the end"),
    ],
)
def test_how_a_command_ended(run: Any, expected: str) -> None:
    ended = EvidenceRun(HandoffCommandRun(**run), "the end")
    assert run_text(CLAIMED, ended) == f"make test at aaaaaaaaaaaa: {expected}"
    CheckedCommand.model_validate(run_json(CLAIMED, ended))


def test_every_outcome_is_told() -> None:
    outcomes = {
        *get_args(CheckedCommand.model_fields["outcome"].annotation),
        *get_args(NamedReceipt.model_fields["outcome"].annotation),
    }
    assert outcomes == set(MARKS)
    proves = {"contractId": "c", "contract": "Login", "outcome": "proves", "detail": "passed"}
    assert receipt_line(proves) == "receipt of Login: proves its side (passed)"
