"""A handoff and its evidence for a terminal. The texts are other agents'."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from schemas.base import present
from schemas.handoff_evidence import STANDINGS
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.evidence import EvidenceRun
    from schemas.handoff_evidence import HandoffCommandEvidence

Json = dict[str, Any]
WIDTH = 300
MARKS = {
    "held": "passed here",
    "failed": "FAILED here",
    "not_run": "could not be tried here",
    "unchecked": "not run here yet",
    "proves": "proves its side",
    "unproven": "PROVES NOTHING",
    "unknown": "not known to this node",
}
"""How the outcome of a command or receipt is told."""


def handoff_text(answer: Json) -> str:
    """What `acp/handoff` answers to `get`."""
    return "\n".join(_lines(answer))


def _lines(answer: Json) -> Iterator[str]:
    handoff, package = answer["handoff"], answer["package"]
    task, work = package["task"], package["work_state"]
    yield f"{one_line(handoff['title'], WIDTH)} ({handoff['status']})"
    yield f"  from {one_line(handoff['fromAgent'], 200)} to {one_line(handoff['toAgent'], 200)}"
    yield f"  why: {one_line(handoff['reason'], WIDTH)}"
    yield f"  task {one_line(task['task_id'])}, {task['priority']}, {work['status']}"
    for wanted in task["success_criteria"]:
        yield f"  wanted: {one_line(wanted, WIDTH)}"
    yield f"  next: {one_line(work['next_step'], WIDTH)}"
    if handoff.get("dueAt"):
        yield f"  due {handoff['dueAt']}"
    evidence = answer.get("evidence")
    if evidence is None:
        yield f"  tests: {work.get('test_status') or 'nothing is said of them'}"
    else:
        yield from _evidence(evidence)
    if answer.get("nextStep"):
        yield f"  {one_line(answer['nextStep'], 1_000)}"


def _evidence(evidence: Json) -> Iterator[str]:
    yield f"  tests pass: {STANDINGS[evidence['standing']]}"
    for run in evidence["commands"]:
        why = f": {one_line(run['detail'], WIDTH)}" if run.get("detail") else ""
        yield f"    {one_line(run['command'])}"
        yield f"      at {run['commit'][:12]}: {MARKS[run['outcome']]}{why}"
    for receipt in evidence["receipts"]:
        yield f"    {receipt_line(receipt)}"
    if evidence.get("checkedBy"):
        yield f"    checked by {one_line(evidence['checkedBy'], 200)}, {evidence['checkedAt']}"


def receipt_line(receipt: Json) -> str:
    """A NamedReceipt, in a line."""
    contract = one_line(receipt.get("contract") or receipt["contractId"], 200)
    detail = one_line(receipt["detail"], WIDTH)
    return f"receipt of {contract}: {MARKS[receipt['outcome']]} ({detail})"


def run_text(claimed: "HandoffCommandEvidence", ended: "EvidenceRun") -> str:
    """How a command ended here; of one that did not pass, with the end of what it printed."""
    run = run_json(claimed, ended)
    line = f"{one_line(claimed.command)} at {claimed.commit[:12]}: {MARKS[run['outcome']]}"
    if run["outcome"] == "failed":
        line += f", with {run['exitCode']}"
    if "detail" in run:
        line += f": {run['detail']}"
    if run.get("sameOutput") is not None:
        line += f" (its output is {'the same' if run['sameOutput'] else 'another'})"
    if run["outcome"] == "held" or not ended.tail:
        return line
    return "\n".join([line, *(f"  | {printed}" for printed in ended.tail.splitlines())])


def run_json(claimed: "HandoffCommandEvidence", ended: "EvidenceRun") -> Json:
    """The CheckedCommand object of a run that was made here."""
    run = ended.run
    outcome = "held" if run.exit_code == 0 else "failed"
    same = claimed.output_digest == run.output_digest if claimed.output_digest else None
    shown = {
        "command": claimed.command,
        "commit": claimed.commit,
        "outcome": "not_run" if run.exit_code is None else outcome,
        "exitCode": run.exit_code,
        "sameOutput": None if run.exit_code is None else same,
        "detail": run.detail,
    }
    return present(shown)
