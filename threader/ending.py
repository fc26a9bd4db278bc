"""How a run ends: COMPLETED, or ABORTED with a reason (agent-threader-v2 §6, §10). Pure."""

from collections.abc import Mapping, Sequence

from schemas.manifest import ManifestTask
from schemas.run_state import RunState, RunStatus, TaskStatus

MAX_NAMED = 20
"""How many tasks a reason names."""


def abort(state: RunState, reason: str) -> None:
    """End the run as ABORTED; the failing tasks are added to the reason. PENDING tasks stay so."""
    failing = [
        f"{key} ({task.last_failure_signature})"
        for key, task in state.tasks.items()
        if task.status in (TaskStatus.FAILED, TaskStatus.ESCALATED)
    ]
    if failing:
        hidden = len(failing) - MAX_NAMED
        more = f" and {hidden} more" if hidden > 0 else ""
        reason += f"; failing: {', '.join(failing[:MAX_NAMED])}{more}"
    state.run_status = RunStatus.ABORTED
    state.abort_reason = reason


def finish(state: RunState, definitions: Mapping[str, ManifestTask]) -> None:
    """End a run that has nothing left to start.

    ABORTED when healing did not converge or failed tasks block others, else COMPLETED.
    """
    tasks = state.tasks.values()
    blocked = [key for key, task in state.tasks.items() if task.status is TaskStatus.PENDING]
    lost = any(task.status is TaskStatus.ESCALATED for task in tasks)
    reasons = [state.no_convergence] if lost and state.no_convergence else []
    if blocked:
        reasons.append(_why_blocked(state, definitions, blocked))
    if reasons:
        abort(state, "; ".join(reasons))
    else:
        state.run_status = RunStatus.COMPLETED
        state.abort_reason = None


def _why_blocked(
    state: RunState, definitions: Mapping[str, ManifestTask], blocked: Sequence[str]
) -> str:
    tasks = state.tasks
    blockers = sorted(
        {
            dep
            for key in blocked
            for dep in definitions[key].depends_on
            if tasks[dep].status not in (TaskStatus.DONE, TaskStatus.PENDING)
        }
    )
    reason = (
        f"no runnable task is left: {', '.join(blockers[:MAX_NAMED])} did not end DONE, which "
        f"holds back {len(blocked)} of {len(tasks)} tasks"
    )
    if failures := state.healer_failures:
        reason += f"; the healer gave {len(failures)} invalid answers ({failures[-1].note})"
    return reason
