"""How a run stands, as it tells a node. Pure."""

from typing import Any

from schemas.base import present
from schemas.manifest import NodeSpec
from schemas.run_state import HealingRound, RunState, TaskState, TaskStatus, WindowRecord
from schemas.thread_runs import REMARK_MAX, ROUNDS_MAX, TASKS_MAX
from threader.budget import spent_in
from threader.events import RunEvent
from threader.interruptions import why_stopped
from threader.outcome import trouble
from threader.reports import NodeCall, without_folders
from threader.signatures import one_line

RUN_REPORT = "cacp/run/report"
_ORDER = (
    TaskStatus.RUNNING,
    TaskStatus.ESCALATED,
    TaskStatus.FAILED,
    TaskStatus.BLOCKED,
    TaskStatus.PENDING,
    TaskStatus.DONE,
)
"""The tasks that a reader looks for first."""
_WAITING = frozenset({"paused", "blocked", "waiting"})


def waiting_for(event: RunEvent) -> str:
    """What the run waits for after this event; "" when it goes on."""
    return event.text if event.kind in _WAITING else ""


def run_report(node: NodeSpec, state: RunState, waits: str, contracts: dict[str, str]) -> NodeCall:
    """The report of a run as it stands. `contracts`: the contract of each task that has one."""
    counts: dict[str, int] = {}
    for task in state.tasks.values():
        counts[task.status] = counts.get(task.status, 0) + 1
    ordered = sorted(state.tasks.items(), key=lambda entry: _ORDER.index(entry[1].status))
    window, spent = state.window, spent_in(state)
    params = {
        "projectId": node.project_id,
        "runId": state.run_id,
        "status": str(state.run_status),
        "startedAt": state.started_at,
        "reason": _remark(state.abort_reason or waits or why_stopped(state)),
        "batchSize": state.policy.current_batch_size,
        "counts": {str(status): count for status, count in counts.items()},
        "tasks": [_task(name, task, contracts.get(name)) for name, task in ordered[:TASKS_MAX]],
        "window": window
        and {
            "number": window.number,
            "attempt": window.passes,
            "size": len(window.task_ids),
            "healRounds": window.heal_rounds,
        },
        "windows": [_window(record) for record in state.windows[-ROUNDS_MAX:]],
        "heals": [_heal(record) for record in state.healing_rounds[-ROUNDS_MAX:]],
        "spent": {
            "invocations": spent.invocations,
            "inputTokens": spent.input_tokens,
            "outputTokens": spent.output_tokens,
            "costUsd": round(spent.cost_usd, 6),
        },
    }
    return NodeCall("run", RUN_REPORT, present(params))


def _task(name: str, task: TaskState, contract_id: str | None) -> dict[str, Any]:
    words = next((record.said for record in reversed(task.history) if record.said), None)
    problem = "" if task.status is TaskStatus.DONE else trouble(task)
    return present(
        {
            "id": name,
            "status": str(task.status),
            "attempts": task.runs,
            "contractId": contract_id,
            "problem": _remark(problem),
            "said": _remark(words),
        }
    )


def _window(record: WindowRecord) -> dict[str, Any]:
    return {
        "number": record.number,
        "attempt": record.attempt,
        "size": record.size,
        "done": record.done,
        "failureRate": min(1.0, max(0.0, record.failure_rate)),
        "verdict": _remark(record.verdict) or "",
        "at": record.timestamp,
    }


def _heal(record: HealingRound) -> dict[str, Any]:
    return present(
        {
            "number": record.round_number,
            "window": record.window,
            "failed": len(record.failed_task_ids),
            "decision": _remark(record.decision) or "",
            "rule": _remark(record.learned_rule),
            "converging": record.converging,
            "at": record.timestamp,
        }
    )


def _remark(text: str | None) -> str | None:
    """One line without this machine's folders; None for nothing."""
    line = without_folders(one_line(text or ""))
    return line[:REMARK_MAX] or None
