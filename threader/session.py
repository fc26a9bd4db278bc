"""Opens runs: a new one, or an old one to go on with (agent-threader-v2 §10)."""

import asyncio
from collections.abc import Sequence

from schemas.run_state import RunState
from threader.course import Course, new_state
from threader.digest import manifest_digest
from threader.errors import DigestMismatch, RunExists, ThreaderError
from threader.load import Project
from threader.process import kill_leftovers
from threader.reconcile import Changes, differences, reconcile, resume
from threader.run import Run, is_committed, make_site
from threader.store import RunStore, now


def start_run(project: Project, *, fresh: bool = False) -> Run:
    """A new run. Raises RunExists unless `fresh`, which puts an old run's folder aside."""
    store = RunStore(project.state_dir)
    if store.exists():
        if not fresh:
            raise RunExists(
                f"{project.manifest.run_id} has been run before: go on with `resume`, or start "
                "over with `run --fresh` (the old run is kept aside)"
            )
        _put_aside(project, store)
        store = RunStore(project.state_dir)
    return Run(project, store, Course(project.manifest, new_state(project.manifest, now())))


def _put_aside(project: Project, store: RunStore) -> None:
    """Rename an old run's folder, once what a crash left half done is undone."""
    store.prepare()
    with store.lock.held():
        try:
            state = store.load()
        except ThreaderError:
            state = new_state(project.manifest, now())
        kill_leftovers(str(store.folder))
        site = make_site(project, store.folder)
        asyncio.run(site.recover(lambda key: is_committed(state, key)))
        number = 1
        while (aside := store.folder.with_name(f"{store.folder.name}.old-{number}")).exists():
            number += 1
        store.folder.rename(aside)


def load_state(project: Project) -> RunState:
    """The run's state as it is on disk. Raises NoSuchRun."""
    return RunStore(project.state_dir).load()


def resume_run(
    project: Project, *, reconciling: bool = False, retry: Sequence[str] = ()
) -> tuple[Run, Changes]:
    """Go on with a run. Raises NoSuchRun, or DigestMismatch when the manifest has changed.

    With `reconciling` the state is fitted to the changed manifest; the changes are returned.
    `retry` names tasks that start afresh whatever became of them.
    """
    store = RunStore(project.state_dir)
    state = store.load()
    unknown = sorted(set(retry) - {task.id for task in project.manifest.tasks})
    if unknown:
        raise ThreaderError(f"--retry: {', '.join(unknown)} is no task of this manifest")
    changes = Changes()
    if state.manifest_digest != manifest_digest(project.manifest):
        if not reconciling:
            found = differences(state, project.manifest).lines() or ["settings only"]
            raise DigestMismatch(
                "the manifest changed since this run began (" + "; ".join(found) + "); "
                "accept that with `resume --reconcile`, or start over with `run --fresh`"
            )
        changes = reconcile(state, project.manifest)
    resume(state, project.manifest, retry)
    return Run(project, store, Course(project.manifest, state)), changes
