"""The meaning of a compact result text for an implementation (wire format; design §5).

| STATUS                        | implementation                                   |
|-------------------------------|--------------------------------------------------|
| ok, no_changes                | complete                                         |
| the same, TESTS or BUILD fail | needs revision                                   |
| partial, retry, decomposed    | in progress                                      |
| needs_decision                | in progress, and QUESTION is asked               |
| fail, rejected, fixture_gap   | needs revision, with ERROR in the notes          |
"""

from dataclasses import dataclass
from typing import Literal

from schemas.wire import Report
from schemas.wire_values import DONE

Status = Literal["in_progress", "complete", "needs_revision"]

_STATUS: dict[str, Status] = {
    "ok": "complete",
    "no_changes": "complete",
    "partial": "in_progress",
    "retry": "in_progress",
    "decomposed": "in_progress",
    "needs_decision": "in_progress",
    "fail": "needs_revision",
    "rejected": "needs_revision",
    "fixture_gap": "needs_revision",
}


@dataclass(frozen=True, slots=True)
class ReportStep:
    """The implementation's next status, with its files and notes, and a question to ask."""

    status: Status
    files: tuple[str, ...] | None
    notes: str | None
    question: str | None


def step_for(report: Report) -> ReportStep:
    """The step that a report stands for, as the table above says."""
    status = _STATUS[report.status]
    if status == "complete" and report.failing:
        status = "needs_revision"
    files = report.files_created + report.files_modified + report.files_deleted
    question = None
    if report.status == "needs_decision":
        question = report.question or report.error or "A decision is needed"
    return ReportStep(status, tuple(dict.fromkeys(files)) or None, _notes(report), question)


def _notes(report: Report) -> str | None:
    lines = [f"status: {report.status}"] if report.status not in DONE or report.failing else []
    if report.error:
        lines.append(f"error: {report.error}")
    if report.tests is not None:
        count = "" if report.tests.count is None else f" ({report.tests.count})"
        lines.append(f"tests: {report.tests.outcome}{count}")
    if report.build is not None:
        lines.append(f"build: {report.build}")
    if report.learned:
        lines.append(f"learned: {report.learned}")
    return "\n".join(lines) or None
