"""What a person has to do for a run, with the commands to copy. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.manifest import Manifest
from schemas.run_state import KeptCopy, RunState, RunStatus, TaskState, TaskStatus
from threader.budget import Unit, budget_of, spent_in, used_up
from threader.heal_rounds import rounds_used
from threader.interruptions import why_stopped
from threader.load import ThreadProject
from threader.outcome import trouble
from threader.plan import stable_order

TROUBLED = (TaskStatus.ESCALATED, TaskStatus.FAILED, TaskStatus.BLOCKED)


@dataclass(frozen=True)
class Need:
    """One thing to do. `task`: the task it concerns, if any; `said`: its worker's own words."""

    text: str
    commands: list[str]
    task: str | None = None
    status: str | None = None
    said: str | None = None
    holds: list[str] = field(default_factory=list)
    """The tasks that wait for this one."""


@dataclass(frozen=True)
class Place:
    """Where a run's files are, for commands that work from any folder."""

    manifest: Path
    workspace: Path
    folder: Path

    def thread(self, verb: str, *args: str) -> str:
        return shlex.join(["cacp", "thread", verb, str(self.manifest), *args])


def place_of(project: ThreadProject) -> Place:
    return Place(project.path, project.workspace, project.state_dir)


def held_back(manifest: Manifest, state: RunState) -> dict[str, list[str]]:
    """Each pending task that waits for failed ones, with those, direct or indirect."""
    roots: dict[str, dict[str, None]] = {}
    depends = {task.id: task.depends_on for task in manifest.tasks}
    for key in stable_order(manifest.tasks):
        task = state.tasks.get(key)
        if task is not None and task.status is TaskStatus.PENDING:
            blockers = [root for dep in depends[key] for root in _roots(dep, state, roots)]
            roots[key] = dict.fromkeys(blockers)
    return {key: list(roots[key]) for key in state.tasks if roots.get(key)}


def _roots(dep: str, state: RunState, roots: dict[str, dict[str, None]]) -> Iterable[str]:
    task = state.tasks.get(dep)
    if task is not None and task.status in TROUBLED:
        return [dep]
    return roots.get(dep, {})


def last_said(task: TaskState) -> str | None:
    """The worker's own words in its last attempt that has any."""
    return next((record.said for record in reversed(task.history) if record.said), None)


def all_kept(state: RunState) -> list[KeptCopy]:
    """Copies of edited files that were then rolled back."""
    records = (record for task in state.tasks.values() for record in task.history)
    return [*state.kept, *(copy for record in records for copy in record.kept)]


def _higher(state: RunState, manifest: Manifest, units: Sequence[Unit]) -> list[str]:
    """The command-line options that double the budgets that are used up."""
    budget = budget_of(state, manifest.policy.budget)
    spent = spent_in(state)
    options: list[str] = []
    if "tokens" in units and budget.tokens is not None:
        tokens = 2 * max(budget.tokens, spent.input_tokens + spent.output_tokens)
        options += ["--budget-tokens", str(tokens)]
    if "usd" in units and budget.usd is not None:
        options += ["--budget-usd", f"{2 * max(budget.usd, spent.cost_usd):.2f}"]
    return options


def _of_run(
    manifest: Manifest, state: RunState, place: Place, runner: str | None
) -> Iterator[Need]:
    if runner is not None or state.run_status is RunStatus.COMPLETED:
        return
    if state.run_status is RunStatus.RUNNING:
        cause = why_stopped(state) or "no process runs it"
        yield Need(f"The run has not ended: {cause}", [place.thread("resume")])
        return
    held = held_back(manifest, state)
    pending = [key for key, task in state.tasks.items() if task.status is TaskStatus.PENDING]
    if units := used_up(spent_in(state), budget_of(state, manifest.policy.budget)):
        more = _higher(state, manifest, units)
        yield Need("The budget is used up", [place.thread("resume", *more)])
    elif len(pending) > len(held):
        yield Need("Tasks are left that are ready to run", [place.thread("resume")])


def _of_rounds(state: RunState, place: Place) -> Iterator[Need]:
    """The heal rounds are used up and tasks still fail."""
    limit = state.policy.max_total_heal_rounds
    lost = any(task.status is TaskStatus.ESCALATED for task in state.tasks.values())
    if limit and lost and rounds_used(state) >= limit:
        yield Need(
            f"The run's {limit} heal rounds are used up (policy.max_total_heal_rounds). A retry "
            "has as many again; for more, raise that in the manifest and add --reconcile",
            [place.thread("resume", "--retry-failed")],
        )


def _of_task(task_id: str, task: TaskState, place: Place, holds: list[str]) -> Need:
    return Need(
        trouble(task),
        [
            place.thread("logs", "--task", task_id),
            place.thread("resume", "--retry", task_id),
        ],
        task=task_id,
        status=task.status,
        said=last_said(task),
        holds=holds,
    )


def _of_copy(copy: KeptCopy, place: Place) -> Need:
    kept, now = place.folder / copy.place, place.workspace / copy.path
    return Need(copy.text, [shlex.join(["diff", "-uN", str(now), str(kept)])])


def needs(
    manifest: Manifest,
    state: RunState,
    place: Place,
    *,
    runner: str | None = None,
    reports: dict[str, Any] | None = None,
) -> list[Need]:
    """Everything to do, for the run itself first. `runner`: the process that runs it now;
    `reports`: the summary of the outbox."""
    holds: dict[str, list[str]] = {}
    for key, roots in held_back(manifest, state).items():
        for root in roots:
            holds.setdefault(root, []).append(key)
    listed = list(_of_run(manifest, state, place, runner))
    exhausted = [] if runner else list(_of_rounds(state, place))
    listed += exhausted
    of_run = len(listed)
    for status in TROUBLED:
        listed += [
            _of_task(key, task, place, holds.get(key, []))
            for key, task in state.tasks.items()
            if task.status is status
        ]
    if len(listed) > 1 + of_run and not exhausted:
        again = [place.thread("resume", "--retry-failed")]
        listed.append(Need("All failed tasks, once the cause is fixed", again))
    listed += [_of_copy(copy, place) for copy in all_kept(state)]
    for problem in (reports or {}).get("problems", ()):
        commands = [place.thread("doctor"), place.thread("resume")]
        listed.append(Need(f"Reports to the node: {problem}", commands))
    return listed
