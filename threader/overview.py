"""Short answers about a run: where it stands, its logs, what its words mean."""

import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

from schemas.run_state import RunState, TaskStatus
from threader.adapters.base import HEALER
from threader.errors import NoSuchRun, ThreaderError
from threader.parsing import EXPLANATIONS
from threader.signatures import one_line

_CLASSES = {
    "prompt_gap": "The prompt leaves out what the worker must know. The healer may add it.",
    "missing_paths": "The worker was not told where something is.",
    "weak_contract": "The prompt does not hold the worker to its contract.",
    "contract_error": "The output is no valid contract. The first time costs no attempt.",
    "output_format": "The output is unusable otherwise, such as a log beyond its limit.",
    "timeout": "The worker ran out of time or fell silent; its process group was killed.",
    "transient_infra": "The CLI or its provider failed: a crash, a rate limit, no connection.",
    "blocked_external": "Something outside the repository is missing. Not healable.",
    "real_bug": "The product is at fault, not the prompt. Not healable.",
    "build_error": "A build or lint step failed after the writes, which were taken back.",
    "test_error": "A test step failed after the writes, which were taken back.",
    "smoke_error": "A smoke step failed after build and tests had passed.",
    "write_rejected": "A write broke a safeguard (path, denylist, shrinkage, precondition).",
    "merge_conflict": "The task's branch does not merge with what other tasks did meanwhile.",
}

_STATUSES = {
    "PENDING": "Waits for its window or its dependencies.",
    "RUNNING": "An attempt is under way.",
    "DONE": "Verified by the runner, and kept.",
    "BLOCKED": "The worker says that something outside stops it.",
    "FAILED": "The last attempt failed, and no retry is due now.",
    "ESCALATED": "Given up; only `resume --retry TASK` runs it again.",
    "COMPLETED": "Every task has come to its end; not every one need be DONE.",
    "ABORTED": "The run stopped early; abort_reason says why.",
}

PHASES = ("worker", "verify", "healer", "rollback")


def explanations() -> dict[str, str]:
    """Every parser code, failure class and status, and what it means."""
    return {**EXPLANATIONS, **_CLASSES, **_STATUSES}


def overview(state: RunState) -> dict[str, Any]:
    """A run's figures and its troubled tasks, ready for JSON."""
    troubled = {
        task_id: {
            "status": str(task.status),
            "signature": task.last_failure_signature,
            "reason": task.escalation_reason,
        }
        for task_id, task in state.tasks.items()
        if task.status in (TaskStatus.ESCALATED, TaskStatus.FAILED, TaskStatus.BLOCKED)
    }
    return {
        "run_id": state.run_id,
        "run_status": str(state.run_status),
        "abort_reason": state.abort_reason,
        "tasks": dict(Counter(str(task.status) for task in state.tasks.values())),
        "window": state.window.number if state.window else None,
        "batch_size": state.policy.current_batch_size,
        "heal_rounds": len(state.healing_rounds),
        "troubled": troubled,
        "updated_at": state.updated_at,
    }


def overview_lines(facts: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{count} {name}" for name, count in facts["tasks"].items())
    lines = [
        f"{facts['run_id']}: {facts['run_status']} ({counts or 'no tasks'})",
        f"window {facts['window'] or 'none'}, size {facts['batch_size']}, "
        f"{facts['heal_rounds']} heal rounds, last change {facts['updated_at']}",
    ]
    if facts["abort_reason"]:
        lines.append(f"stopped: {one_line(facts['abort_reason'])}")
    for task_id, item in facts["troubled"].items():
        why = one_line(item["reason"] or item["signature"] or "")
        lines.append(f"  {task_id} {item['status']}: {why}")
    return lines


def find_logs(folder: Path, task: str | None, phase: str | None) -> list[Path]:
    """The run's logs, oldest first. Rollbacks stand in the verify log. Raises NoSuchRun."""
    if not (folder / "logs").is_dir():
        raise NoSuchRun("this manifest has not been run yet")
    if phase not in (None, *PHASES):
        raise ThreaderError(f"--phase: there is no phase {phase}; there is {', '.join(PHASES)}")
    wanted = "verify" if phase == "rollback" else phase
    found = []
    for path in (folder / "logs").glob("*.log"):
        parts = path.name.removesuffix(".log").split(".")
        name, kind = ("", "healer") if parts[0] == HEALER else (".".join(parts[:-2]), parts[-2])
        if (task is None or name == task) and (wanted is None or kind == wanted):
            found.append(path)
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))


def follow_logs(
    folder: Path, task: str | None, phase: str | None, out: TextIO, *, rounds: int | None = None
) -> None:
    """Print what is added to the logs, until interrupted or for `rounds` looks."""
    sizes = {path: path.stat().st_size for path in find_logs(folder, task, phase)}
    last: Path | None = None
    while rounds is None or rounds > 0:
        for path in find_logs(folder, task, phase):
            with path.open("rb") as file:
                file.seek(sizes.get(path, 0))
                data = file.read()
            sizes[path] = sizes.get(path, 0) + len(data)
            if data:
                head = "" if path == last else f"==> {path.name} <==\n"
                out.write(head + data.decode("utf-8", "replace"))
                out.flush()
                last = path
        time.sleep(0.2)
        rounds = None if rounds is None else rounds - 1
