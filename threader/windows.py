"""Windows and Progressive Batch Healing (agent-threader-v2 §5, §6). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.manifest import HealSchedule
from schemas.run_state import PolicyState, TaskState, TaskStatus, WindowState
from threader.convergence import is_converging, no_convergence


def grow(size: int, limit: int) -> int:
    """The next larger Fibonacci size, at most `limit`."""
    a, b = 1, 2
    while a <= size:
        a, b = b, a + b
    return max(1, min(a, limit))


def shrink(size: int) -> int:
    """The next smaller Fibonacci size, at least 1."""
    a, b = 1, 2
    while b < size:
        a, b = b, a + b
    return a


def window_limit(policy: PolicyState, pending: int) -> int:
    """How many ready tasks the next window takes (§6 "Scheduling Modes").

    Without healing there is no checkpoint to wait for, so `off` sweeps like `epoch`.
    """
    if policy.heal_schedule is HealSchedule.TASK:
        return 1
    if sweeps(policy):
        return pending
    return policy.current_batch_size


def sweeps(policy: PolicyState) -> bool:
    """Whether the window takes in dependents as they become ready."""
    return policy.heal_schedule in (HealSchedule.EPOCH, HealSchedule.OFF)


def failure_rate(tasks: Sequence[TaskState]) -> float:
    """Healable failures per attempted healable task of a settled window, 0 when there is none."""
    failed = sum(task.status is TaskStatus.FAILED and task.healable for task in tasks)
    attempted = failed + sum(task.status is TaskStatus.DONE for task in tasks)
    return failed / attempted if attempted else 0.0


class Action(StrEnum):
    ADVANCE = "advance"
    HEAL = "heal"


@dataclass(frozen=True)
class Verdict:
    """What follows from a settled window."""

    action: Action
    text: str
    failure_rate: float
    next_batch_size: int
    stalled_rounds: int
    failing: tuple[str, ...] = ()
    """Healable failures in window order: the healing scope."""
    shrinks: bool = False
    converging: bool | None = None
    """Whether the last heal round helped; None when this pass was no retry."""
    escalations: Mapping[str, str] = field(default_factory=dict)
    no_convergence: str | None = None
    """Why healing does not help (§10); the window's failing tasks are escalated for it."""


def judge(
    window: WindowState,
    tasks: Mapping[str, TaskState],
    policy: PolicyState,
    *,
    rounds_used: int,
    stalled_rounds: int,
    healer: bool,
    max_batch_size: int,
) -> Verdict:
    """The verdict on a window whose tasks have all settled. `healer`: whether there is one."""
    members = [tasks[task_id] for task_id in window.task_ids]
    failing = tuple(
        task_id
        for task_id, task in zip(window.task_ids, members, strict=True)
        if task.status is TaskStatus.FAILED and task.healable
    )
    rate = failure_rate(members)
    clean = all(task.status is TaskStatus.DONE for task in members)
    auto = policy.heal_schedule is HealSchedule.AUTO
    shrinks = auto and rate > policy.failure_threshold
    size = policy.current_batch_size
    if shrinks:
        size = shrink(size)
    elif auto and clean:
        size = grow(size, max_batch_size)
    unhealed = _unhealed(window, tasks, failing)
    converging = None
    if window.healed_failures:
        converging = is_converging(window.healed_failures, unhealed)
        stalled_rounds = 0 if converging else stalled_rounds + 1
    elif window.passes == 1 and any(task.status is TaskStatus.DONE for task in members):
        stalled_rounds = 0
    reason = no_convergence(
        before=window.healed_failures,
        after=unhealed,
        stalled_rounds=stalled_rounds,
        rounds_used=rounds_used,
        max_rounds_per_window=policy.max_heal_rounds_per_window,
        max_total_rounds=policy.max_total_heal_rounds,
    )
    action, text, escalates = (
        (Action.ADVANCE, reason, True)
        if reason
        else _action(window, policy, failing, rounds_used, clean=clean, healer=healer)
    )
    if action is Action.HEAL and shrinks:
        text = "shrink and heal"
    escalations = dict.fromkeys(failing, text) if escalates else {}
    return Verdict(
        action,
        text,
        rate,
        size,
        # What is tried next is not to blame for what healing could not mend before.
        0 if reason else stalled_rounds,
        failing,
        shrinks,
        converging,
        escalations,
        reason,
    )


def _unhealed(
    window: WindowState, tasks: Mapping[str, TaskState], failing: Sequence[str]
) -> dict[str, str]:
    """Task and signature of what healing has not mended, escalated for repetition or not."""
    stuck = (
        key
        for key in window.task_ids
        if tasks[key].status is TaskStatus.ESCALATED and tasks[key].signature_repeats > 0
    )
    return {key: tasks[key].last_failure_signature or "" for key in (*failing, *stuck)}


def _action(
    window: WindowState,
    policy: PolicyState,
    failing: Sequence[str],
    rounds_used: int,
    *,
    clean: bool,
    healer: bool,
) -> tuple[Action, str, bool]:
    """What to do, why, and whether the failing tasks are escalated by it."""
    if clean:
        return Action.ADVANCE, "clean", False
    if not failing:
        return Action.ADVANCE, "nothing healable failed", False
    if policy.heal_schedule is HealSchedule.OFF or not healer:
        return Action.ADVANCE, "healing is off", False
    if rounds_used >= policy.max_total_heal_rounds:
        return Action.ADVANCE, "the run's heal rounds are used up", True
    if window.heal_rounds >= policy.max_heal_rounds_per_window:
        return Action.ADVANCE, f"still failing after {window.heal_rounds} heal rounds", True
    return Action.HEAL, "heal and retry", False


def isolate(failing: Sequence[str], tasks: Mapping[str, TaskState], size: int) -> list[str]:
    """The retry window after a shrink: one task for each signature, at most `size`.

    A signature shared by several tasks is tried first and on one of them, so that a heal is
    proven before the others pay for it; those left out go back to the queue.
    """
    groups: dict[str, list[str]] = {}
    for task_id in failing:
        groups.setdefault(tasks[task_id].last_failure_signature or "", []).append(task_id)
    shared = [group[0] for group in groups.values() if len(group) > 1]
    single = [group[0] for group in groups.values() if len(group) == 1]
    return [*shared, *single][: max(1, size)]
