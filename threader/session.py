"""Opens a new run, or an old one to continue (agent-threader-v2 §10)."""

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase

from schemas.manifest import Budget
from schemas.run_state import KeptCopy, RunState, TaskStatus
from threader.budget import over
from threader.digest import is_digest_of, manifest_digest
from threader.errors import DigestMismatch, NotReady, RunExists, ThreaderError
from threader.initial_state import new_state
from threader.interruptions import reopened
from threader.load import ThreadProject
from threader.orchestrator import Orchestrator
from threader.preflight import make_site
from threader.process import kill_leftovers
from threader.reconcile import Changes, differences, reconcile, resume
from threader.recovery import is_committed
from threader.scheduler import Scheduler
from threader.store import RunStore, now


def start_run(
    project: ThreadProject, *, fresh: bool = False, budget: Budget | None = None
) -> Orchestrator:
    """A new run. Raises RunExists, unless `fresh`: then an old run's folder is renamed.

    `budget` overrides the manifest's.
    """
    store = RunStore(project.state_dir)
    kept: list[KeptCopy] = []
    if store.exists():
        if not fresh:
            raise RunExists(
                f"{project.manifest.run_id} has been run before: continue it with `resume`, or "
                "start over with `run --fresh` (the old run's files are kept)"
            )
        kept = _archive(project, store)
        store = RunStore(project.state_dir)
    state = new_state(project.manifest, now())
    state.kept, state.budget = kept, budget
    return Orchestrator(project, store, Scheduler(project.manifest, state))


def _archive(project: ThreadProject, store: RunStore) -> list[KeptCopy]:
    """Rename an old run's folder, after undoing what a crash left unfinished.

    Returns the kept copies of edited files, with paths relative to the new run's folder.
    """
    store.prepare()
    with store.lock.held():
        known = True
        try:
            state = store.load()
        except ThreaderError:
            state, known = new_state(project.manifest, now()), False
        kill_leftovers(str(store.folder))
        site = make_site(project, store.folder)
        try:
            undone = asyncio.run(site.recover(lambda key: is_committed(state, key)))
        except NotReady:
            state.kept += site.backup_copies()
            if known:
                store.write_state(state, ())
            raise
        number = 1
        while (aside := store.folder.with_name(f"{store.folder.name}.old-{number}")).exists():
            number += 1
        store.folder.rename(aside)
    copies = [*state.kept, *(copy for copies in undone.values() for copy in copies)]
    return [copy.model_copy(update={"place": f"../{aside.name}/{copy.place}"}) for copy in copies]


def load_state(project: ThreadProject) -> RunState:
    """The run's state on disk. Raises NoSuchRun."""
    return RunStore(project.state_dir).load()


def resume_run(
    project: ThreadProject,
    *,
    reconciling: bool = False,
    retry: Sequence[str] = (),
    retry_failed: str | None = None,
    budget: Budget | None = None,
) -> tuple[Orchestrator, Changes]:
    """Continue a run. Raises NoSuchRun, or DigestMismatch when the manifest has changed.

    With `reconciling` the state is adapted to the changed manifest; the changes are returned.
    `retry` names tasks that start afresh, whatever their status; `retry_failed` is a glob for tasks
    that ended FAILED, ESCALATED or BLOCKED and start afresh too. `budget` overrides the manifest's
    and any earlier one.
    """
    store = RunStore(project.state_dir)
    state = store.load()
    unknown = sorted(set(retry) - {task.id for task in project.manifest.tasks})
    if unknown:
        raise ThreaderError(f"--retry: {', '.join(unknown)} is not a task of this manifest")
    if retry_failed is not None:
        retry = [*retry, *_failed(state, project, retry_failed)]
    reopened(state, now(), store.last_seen())
    changes = Changes()
    if not is_digest_of(state.manifest_digest, project.manifest):
        if not reconciling:
            differing = differences(state, project.manifest).lines() or ["settings only"]
            raise DigestMismatch(
                "the manifest changed since this run began (" + "; ".join(differing) + "); "
                "accept that with `resume --reconcile`, or start over with `run --fresh`"
            )
        changes = reconcile(state, project.manifest)
    state.manifest_digest = manifest_digest(project.manifest)
    state.budget = over(budget, state.budget)
    resume(state, project.manifest, retry)
    return Orchestrator(project, store, Scheduler(project.manifest, state)), changes


_FAILED = (TaskStatus.FAILED, TaskStatus.ESCALATED, TaskStatus.BLOCKED)


def _failed(state: RunState, project: ThreadProject, pattern: str) -> list[str]:
    """The tasks that `--retry-failed` selects. Raises ThreaderError when the glob matches none."""
    named = [task.id for task in project.manifest.tasks if fnmatchcase(task.id, pattern)]
    if not named:
        raise ThreaderError(f"--retry-failed: {pattern} matches no task of this manifest")
    return [key for key in named if key in state.tasks and state.tasks[key].status in _FAILED]
