"""Resumes a run and adapts its state to a changed manifest (agent-threader-v2 §10). Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from schemas.manifest import Manifest
from schemas.run_state import RunState, RunStatus, TaskState, TaskStatus
from threader.budget import spent_on, together
from threader.digest import manifest_digest, task_definition
from threader.initial_state import initial_policy
from threader.outcome import may_retry, rules_for


@dataclass(frozen=True)
class Changes:
    """How the manifest differs from the one that the state was made for."""

    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    dependents: list[str] = field(default_factory=list)
    """Tasks that depend on a changed one, and so run again too."""

    def lines(self) -> list[str]:
        names = ("removed", "added", "changed", "dependents")
        return [
            f"{name}: {', '.join(getattr(self, name))}" for name in names if getattr(self, name)
        ]


def differences(state: RunState, manifest: Manifest) -> Changes:
    """The changes that `reconcile` would apply."""
    defined = {task.id: task for task in manifest.tasks}
    changed = [
        task.id
        for task in manifest.tasks
        if task.id in state.tasks and state.tasks[task.id].definition != task_definition(task)
    ]
    affected = set(changed)
    grows = True
    while grows:
        dependents = {task.id for task in manifest.tasks if affected.intersection(task.depends_on)}
        grows = not dependents <= affected
        affected |= dependents
    return Changes(
        removed=[task_id for task_id in state.tasks if task_id not in defined],
        added=[task_id for task_id in defined if task_id not in state.tasks],
        changed=changed,
        dependents=sorted(affected.intersection(state.tasks) - set(changed)),
    )


def fresh(task: TaskState) -> TaskState:
    """The task as PENDING without failures; its history and run numbers continue."""
    return TaskState(
        history=task.history,
        revision=task.revision + 1,
        runs=task.runs,
        definition=task.definition,
        applied_patch_ids=task.applied_patch_ids,
    )


def reconcile(state: RunState, manifest: Manifest) -> Changes:
    """Adapt `state` to `manifest`. ESCALATED tasks stay so until the operator retries them."""
    changes = differences(state, manifest)
    again = {*changes.changed, *changes.dependents}
    tasks: dict[str, TaskState] = {}
    for task in manifest.tasks:
        known = state.tasks.get(task.id, TaskState())
        if task.id in again and known.status is not TaskStatus.ESCALATED:
            known = fresh(known)
        tasks[task.id] = known.model_copy(update={"definition": task_definition(task)})
    gone = [spent_on(state.tasks[task_id]) for task_id in changes.removed]
    state.aside = together([state.aside, *gone])
    state.tasks = tasks
    state.budget = None
    state.manifest_digest = manifest_digest(manifest)
    size = state.policy.current_batch_size
    same_schedule = state.policy.heal_schedule is manifest.policy.heal_schedule
    state.policy = initial_policy(manifest)
    if same_schedule:
        state.policy.current_batch_size = size
    _leave_window(state, again)
    return changes


def _leave_window(state: RunState, leaving: Collection[str]) -> None:
    """Remove tasks that start afresh or are gone from the window under way."""
    if state.window is None:
        return
    members = [key for key in state.window.task_ids if key in state.tasks and key not in leaving]
    state.window.task_ids = members
    if not members:
        state.window = None


def resume(state: RunState, manifest: Manifest, retry: Sequence[str] = ()) -> None:
    """Continue a stopped run: FAILED and BLOCKED tasks run again if attempts are left (§10).

    `retry` names tasks that start afresh, ESCALATED ones too; the run then has all its heal rounds
    again.
    """
    state.run_status = RunStatus.RUNNING
    state.abort_reason = None
    state.stalled_rounds = 0
    if retry:
        state.no_convergence, state.rounds_forgiven = None, len(state.healing_rounds)
    _leave_window(state, retry)
    members = state.window.task_ids if state.window else []
    for task in manifest.tasks:
        known = state.tasks[task.id]
        if task.id in retry:
            state.tasks[task.id] = fresh(known)
        elif task.id not in members and may_retry(known, rules_for(task, manifest.policy)):
            state.tasks[task.id] = known.model_copy(update={"status": TaskStatus.PENDING})
