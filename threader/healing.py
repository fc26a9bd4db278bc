"""Grants or refuses a healer's decision, and applies it to tasks (agent-threader-v2 §6–§8).

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.heal_decision import Decision, HealDecision, Patch
from schemas.manifest import RUNTIME_KEYS, Bound, HealSchedule, Manifest, RuntimeKey
from schemas.run_state import TaskState, TaskStatus, WindowState
from threader.outcome import Rules, escalate, may_retry, reset, retry
from threader.windows import isolate


@dataclass(frozen=True)
class FilePatch:
    """A prompt or shared-context file to change. `path` is as the manifest spells it."""

    path: str
    append: bool
    content: str


@dataclass(frozen=True)
class Grant:
    """A decision all of whose patches are allowed, resolved to files, settings and tasks."""

    files: tuple[FilePatch, ...] = ()
    runtime: Mapping[RuntimeKey, float] = field(default_factory=dict)
    hints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    patch_ids: tuple[str, ...] = ()
    touched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patch ids by the task that they affect."""


def context_users(manifest: Manifest) -> dict[str, set[str]]:
    """The tasks that read each shared-context file."""
    users: dict[str, set[str]] = {
        ref: {t.id for t in manifest.tasks} for ref in manifest.context_refs
    }
    for task in manifest.tasks:
        for ref in task.context_refs:
            users.setdefault(ref, set()).add(task.id)
    return users


@dataclass
class _Review:
    manifest: Manifest
    scope: Sequence[str]
    problems: list[str] = field(default_factory=list)
    files: list[FilePatch] = field(default_factory=list)
    runtime: dict[RuntimeKey, float] = field(default_factory=dict)
    hints: dict[str, list[str]] = field(default_factory=dict)

    def refuse(self, where: str, why: str) -> set[str]:
        self.problems.append(f"{where}: {why}")
        return set()

    def patch(self, where: str, patch: Patch) -> set[str]:
        """Check one patch; returns the tasks it affects."""
        if patch.task_id is not None and patch.task_id not in self.scope:
            return self.refuse(f"{where}.task_id", f"{patch.task_id} is not in the healing scope")
        if patch.target == "runtime_patch":
            return self._runtime(where, patch)
        text = str(patch.content)
        if patch.target == "contract_hint":
            tasks = [patch.task_id] if patch.task_id else list(self.scope)
            for task_id in tasks:
                self.hints.setdefault(task_id, []).append(text)
            return set(tasks)
        if patch.target == "task_prompt":
            return self._prompt(where, patch)
        return self._context(where, patch)

    def _prompt(self, where: str, patch: Patch) -> set[str]:
        task = next(task for task in self.manifest.tasks if task.id == patch.task_id)
        if patch.path not in (None, task.prompt_ref):
            return self.refuse(f"{where}.path", f"the prompt of {task.id} is {task.prompt_ref}")
        users = {t.id for t in self.manifest.tasks if t.prompt_ref == task.prompt_ref}
        users |= context_users(self.manifest).get(task.prompt_ref, set())
        if outside := sorted(users - set(self.scope)):
            return self.refuse(where, f"{task.prompt_ref} is read by {outside[0]} too")
        self.files.append(
            FilePatch(task.prompt_ref, patch.operation == "append", str(patch.content))
        )
        return users

    def _context(self, where: str, patch: Patch) -> set[str]:
        users = context_users(self.manifest).get(patch.path or "", set())
        if not users & set(self.scope):
            return self.refuse(f"{where}.path", "no task in the healing scope reads this context")
        if self.manifest.policy.heal_schedule is HealSchedule.TASK and len(users) > 1:
            return self.refuse(where, "the schedule `task` may not change context others read")
        self.files.append(
            FilePatch(patch.path or "", patch.operation == "append", str(patch.content))
        )
        return users

    def _runtime(self, where: str, patch: Patch) -> set[str]:
        settings = patch.content if isinstance(patch.content, dict) else {}
        for key, value in settings.items():
            known = next((name for name in RUNTIME_KEYS if name == key), None)
            limit = self.manifest.policy.runtime_limits.get(known) if known else None
            if known is None or limit is None:
                self.refuse(f"{where}.content.{key}", "the operator has not opened this setting")
            else:
                self._bounded(f"{where}.content.{key}", known, value, limit)
        return set(self.scope)

    def _bounded(self, where: str, key: RuntimeKey, value: object, limit: Bound) -> None:
        whole = key != "timeout_sec"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            self.refuse(where, "must be a whole number" if whole else "must be a number")
        elif not limit.min <= value <= limit.max:
            self.refuse(where, f"{value} is outside {limit.min:g} to {limit.max:g}")
        else:
            self.runtime[key] = value


def review(
    decision: HealDecision, manifest: Manifest, scope: Sequence[str], next_patch: int
) -> Grant | list[str]:
    """Check a decision's patches against the guardrails, all or nothing.

    `scope` holds the tasks shown to the healer, `next_patch` numbers its first patch. Returns
    what to apply, or every reason to refuse. A reset of a task outside the scope has no effect.
    """
    checker = _Review(manifest, scope)
    touched: dict[str, list[str]] = {}
    ids = []
    patches = decision.patches if decision.decision is Decision.RETRY else []
    for index, patch in enumerate(patches):
        patch_id = f"patch-{next_patch + index:03}"
        ids.append(patch_id)
        for task_id in checker.patch(f"patches[{index}]", patch):
            touched.setdefault(task_id, []).append(patch_id)
    for index, item in enumerate(decision.escalations):
        if item.task_id not in scope:
            checker.refuse(f"escalations[{index}]", f"{item.task_id} is not in the healing scope")
    if checker.problems:
        return checker.problems
    return Grant(
        files=tuple(checker.files),
        runtime=checker.runtime,
        hints={task_id: tuple(hints) for task_id, hints in checker.hints.items()},
        patch_ids=tuple(ids),
        touched={task_id: tuple(ids) for task_id, ids in touched.items()},
    )


@dataclass(frozen=True)
class AfterHeal:
    """The tasks that changed, and the window to run next (None: form a new one)."""

    tasks: Mapping[str, TaskState]
    window: WindowState | None


def after_heal(
    decision: HealDecision,
    grant: Grant,
    window: WindowState,
    failing: Sequence[str],
    tasks: Mapping[str, TaskState],
    rules: Mapping[str, Rules],
    *,
    batch_size: int,
    shrinks: bool,
    epoch: int,
) -> AfterHeal:
    """Resets, escalations and the retry window that a granted decision leads to (§6, §7).

    A task the healer does not reset runs again only if retry policy grants it an attempt.
    """
    changed = _fates(decision, grant, failing, tasks, rules)
    again = [task_id for task_id in failing if _pending(changed.get(task_id))]
    directive = decision.retry_policy.retry_window
    if directive == "next_epoch":
        for task_id in again:
            changed[task_id] = changed[task_id].model_copy(update={"epoch": epoch + 1})
        return AfterHeal(changed, None)
    members = again
    if shrinks or directive == "shrink_window":
        members = isolate(again, tasks, batch_size)
    if not members:
        return AfterHeal(changed, None)
    healed = {
        task_id: tasks[task_id].last_failure_signature or ""
        for task_id in members
        if changed[task_id].worker_attempts == 0
    }
    following = window.model_copy(
        update={
            "task_ids": members,
            "heal_rounds": window.heal_rounds + 1,
            "passes": window.passes + 1,
            "needs_heal": False,
            "healed_failures": healed,
        }
    )
    return AfterHeal(changed, following)


def _pending(task: TaskState | None) -> bool:
    return task is not None and task.status is TaskStatus.PENDING


def _fates(
    decision: HealDecision,
    grant: Grant,
    failing: Sequence[str],
    tasks: Mapping[str, TaskState],
    rules: Mapping[str, Rules],
) -> dict[str, TaskState]:
    """The failing tasks that the decision escalates, resets or leaves to retry policy."""
    named = {item.task_id: item.reason for item in decision.escalations}
    if decision.decision is not Decision.RETRY and not named:
        named = dict.fromkeys(failing, decision.root_cause)
    resets = decision.retry_policy.reset_tasks
    changed: dict[str, TaskState] = {}
    for task_id in failing:
        task = tasks[task_id]
        if task_id in named:
            changed[task_id] = escalate(task, f"healer: {named[task_id] or decision.root_cause}")
        elif decision.decision is Decision.RETRY and (resets is None or task_id in resets):
            again = reset(task, list(grant.touched.get(task_id, ())))
            hints = [*again.hints, *grant.hints.get(task_id, ())]
            limit = grant.runtime.get("timeout_sec", again.timeout_sec)
            changed[task_id] = again.model_copy(update={"hints": hints, "timeout_sec": limit})
        elif may_retry(task, rules[task_id]):
            changed[task_id] = retry(task)
    return changed
