"""Undoes what a crash left behind, and counts what was used up to it."""

from pathlib import Path

from schemas.run_state import RunState, TaskStatus
from threader.adapters.base import HEALER, Adapter, ExecutionArtifact
from threader.attempt import worker_log
from threader.files import remove_tree
from threader.landing import WorkSite
from threader.outcome import Ending
from threader.process import Exit, kill_leftovers
from threader.recorder import RunRecorder
from threader.scheduler import Scheduler
from threader.store import RunStore


def is_committed(state: RunState, key: str) -> bool:
    """Whether `state` books the attempt or heal round of the backup folder `key` as done."""
    name, _, number = key.rpartition(".")
    if name == "@heal":
        return int(number) <= len(state.healing_rounds)
    task = state.tasks.get(name)
    return task is not None and task.status is TaskStatus.DONE and task.runs == int(number)


def charge_cut_off(
    scheduler: Scheduler, folder: Path, worker: Adapter | None, healer: Adapter | None
) -> None:
    """Add to the ledger what invocations that were cut off used, as far as their logs tell.

    Call it while none is under way. What it has added once, it does not add again.
    """
    tasks = scheduler.state.tasks
    logs = [worker_log(folder, key, task.runs) for key, task in tasks.items()]
    logs += sorted((folder / "logs").glob(f"{HEALER}.*.log"))
    existing = (log.relative_to(folder).as_posix() for log in logs if log.exists())
    for name in scheduler.ledger.uncounted(existing):
        adapter = healer if Path(name).name.startswith(HEALER) else worker
        if adapter is not None:
            artifact = ExecutionArtifact(folder / name, Exit(Ending.EXITED, None, 0.0))
            scheduler.ledger.charge_cut_off(name, adapter.usage(artifact))


async def undo_crash(
    store: RunStore, state: RunState, site: WorkSite, recorder: RunRecorder
) -> None:
    """Take back half-applied writes and merges; remove scratch folders. Raises NotReady."""
    undone = await site.recover(lambda key: is_committed(state, key))
    for key, copies in undone.items():
        recorder.tell("recovered", f"took back the half-done changes of {key}")
        recorder.keep(copies)
    remove_tree(store.folder / "staging")
    store.prepare()


def kill_strays(store: RunStore, recorder: RunRecorder) -> None:
    """Kill the processes that an earlier runner left behind."""
    killed = kill_leftovers(str(store.folder))
    if killed:
        recorder.tell("recovered", f"killed {killed} processes that an earlier run left")
