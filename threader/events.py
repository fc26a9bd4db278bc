"""What happens in a run, as its listeners see it, and the texts for people. Pure."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from schemas.run_state import RunState, Spent, TaskState, TaskStatus, WindowState
from schemas.task_result import TaskResult
from threader.outcome import trouble
from threader.windows import WindowVerdict

EventKind = Literal[
    "window", "started", "settled", "verdict", "healing", "healed", "ended", "recovered",
    "paused", "blocked", "resumed", "waiting",
]  # fmt: skip


@dataclass(frozen=True)
class RunEvent:
    """Something a view may show, or a reporter pass on. `text` is one line."""

    kind: EventKind
    text: str
    task_id: str | None = None
    result: TaskResult | None = None
    rule: str | None = None
    spent: Spent | None = None
    """What the run had used by then."""


Listener = Callable[[RunEvent, RunState], None]


def window_text(window: WindowState) -> str:
    attempt = f", pass {window.passes}" if window.passes > 1 else ""
    return f"window {window.number}{attempt}: {len(window.task_ids)} tasks"


def task_text(task_id: str, task: TaskState) -> str:
    if task.status is TaskStatus.DONE:
        return f"{task_id} DONE"
    if task.status is TaskStatus.PENDING:
        return f"{task_id} runs again: {task.last_failure_signature}"
    return f"{task_id} {task.status}: {trouble(task)}"


def verdict_text(verdict: WindowVerdict) -> str:
    text = f"{verdict.text}; failure rate {verdict.failure_rate:.0%}"
    for task_id, reason in verdict.escalations.items():
        text += f"; {task_id} ESCALATED: {reason}"
    return text


def counts_text(state: RunState) -> str:
    """How many tasks have each status: `5 DONE, 1 FAILED`, or `no tasks`."""
    counts = Counter(str(task.status) for task in state.tasks.values())
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "no tasks"


def end_text(state: RunState) -> str:
    reason = f": {state.abort_reason}" if state.abort_reason else ""
    return f"{state.run_status}: {counts_text(state)}{reason}"
