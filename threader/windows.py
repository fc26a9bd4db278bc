"""Windows and Progressive Batch Healing (agent-threader-v2 §5, §6). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.manifest import HealSchedule
from schemas.run_state import PolicyState, RunState, TaskState, TaskStatus, WindowState
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
    """Whether tasks join the window as they become ready."""
    return policy.heal_schedule in (HealSchedule.EPOCH, HealSchedule.OFF)


def failure_rate(tasks: Sequence[TaskState]) -> float:
    """Healable failures per attempted healable task of a settled window, 0 when there is none."""
    failed = sum(map(is_healable_failure, tasks))
    attempted = failed + sum(task.status is TaskStatus.DONE for task in tasks)
    return failed / attempted if attempted else 0.0


def is_healable_failure(task: TaskState) -> bool:
    return task.status is TaskStatus.FAILED and task.healable


def open_window_of(state: RunState) -> WindowState:
    """The window under way. Raises RuntimeError when none is open."""
    if state.window is None:
        raise RuntimeError("no window is open")
    return state.window


class Action(StrEnum):
    ADVANCE = "advance"
    HEAL = "heal"


@dataclass(frozen=True)
class WindowVerdict:
    """What follows from a settled window."""

    action: Action
    text: str
    failure_rate: float
    next_batch_size: int
    stalled_rounds: int
    converging: bool | None = None
    """Whether the last heal round helped; None when this pass was no retry."""
    escalations: Mapping[str, str] = field(default_factory=dict)
    """The tasks to escalate, and why."""
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
) -> WindowVerdict:
    """The verdict on a window whose tasks have all settled. `healer`: whether there is one."""
    members = [tasks[task_id] for task_id in window.task_ids]
    failing = [task_id for task_id in window.task_ids if is_healable_failure(tasks[task_id])]
    rate = failure_rate(members)
    clean = all(task.status is TaskStatus.DONE for task in members)
    shrinks = policy.heal_schedule is HealSchedule.AUTO and rate > policy.failure_threshold
    unhealed = _unhealed(window, tasks, failing)
    converging, stalled_rounds = _progress(window, members, unhealed, stalled_rounds)
    stuck = no_convergence(
        before=window.healed_failures,
        after=unhealed,
        stalled_rounds=stalled_rounds,
        rounds_used=rounds_used,
        max_rounds_per_window=policy.max_heal_rounds_per_window,
        max_total_rounds=policy.max_total_heal_rounds,
    )
    action, text, escalates = (
        (Action.ADVANCE, stuck, True)
        if stuck
        else _action(window, policy, failing, rounds_used, clean=clean, healer=healer)
    )
    if action is Action.HEAL and shrinks:
        text = "shrink and heal"
    return WindowVerdict(
        action=action,
        text=text,
        failure_rate=rate,
        next_batch_size=_next_size(policy, max_batch_size, shrinks=shrinks, clean=clean),
        # The next window starts counting from zero.
        stalled_rounds=0 if stuck else stalled_rounds,
        converging=converging,
        escalations=dict.fromkeys(failing, text) if escalates else {},
        no_convergence=stuck,
    )


def _next_size(policy: PolicyState, limit: int, *, shrinks: bool, clean: bool) -> int:
    """The batch size after a window (§6): it changes in `auto` only."""
    size = policy.current_batch_size
    if shrinks:
        return shrink(size)
    if policy.heal_schedule is HealSchedule.AUTO and clean:
        return grow(size, limit)
    return size


def _progress(
    window: WindowState,
    members: Sequence[TaskState],
    unhealed: Mapping[str, str],
    stalled_rounds: int,
) -> tuple[bool | None, int]:
    """Whether the last heal round helped, and how many rounds in a row have not."""
    if window.healed_failures:
        converging = is_converging(window.healed_failures, unhealed)
        return converging, 0 if converging else stalled_rounds + 1
    if window.passes == 1 and any(task.status is TaskStatus.DONE for task in members):
        return None, 0
    return None, stalled_rounds


def _unhealed(
    window: WindowState, tasks: Mapping[str, TaskState], failing: Sequence[str]
) -> dict[str, str]:
    """Signatures of the tasks that healing did not fix, with those escalated for repetition."""
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
    """What to do, why, and whether the failing tasks are escalated."""
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

    A signature shared by several tasks comes first, with one of them, so that a heal is proven
    before it is tried on the others; those left out go back to the queue.
    """
    groups: dict[str, list[str]] = {}
    for task_id in failing:
        groups.setdefault(tasks[task_id].last_failure_signature or "", []).append(task_id)
    shared = [group[0] for group in groups.values() if len(group) > 1]
    single = [group[0] for group in groups.values() if len(group) == 1]
    return [*shared, *single][: max(1, size)]
