"""How a run ends."""

from schemas.run_state import RunState, RunStatus, TaskStatus
from tests.threader.builders import NOW, make_manifest
from threader.ending import abort, finish
from threader.initial_state import new_state

MANIFEST = make_manifest(["A", {"id": "B", "depends_on": ["A"]}])
DEFINITIONS = {task.id: task for task in MANIFEST.tasks}


def state_of(**statuses: TaskStatus) -> RunState:
    state = new_state(MANIFEST, NOW)
    for task_id, status in statuses.items():
        state.tasks[task_id].status = status
    return state


def test_a_run_without_pending_tasks_is_completed() -> None:
    state = state_of(A=TaskStatus.DONE, B=TaskStatus.FAILED)
    finish(state, DEFINITIONS)
    assert (state.run_status, state.abort_reason) == (RunStatus.COMPLETED, None)


def test_a_failed_task_that_blocks_others_aborts_the_run() -> None:
    state = state_of(A=TaskStatus.BLOCKED)
    finish(state, DEFINITIONS)
    assert state.run_status is RunStatus.ABORTED
    assert state.abort_reason == (
        "no runnable task is left: A did not end DONE, which holds back 1 of 2 tasks"
    )


def test_healing_that_did_not_converge_aborts_the_run() -> None:
    state = state_of(A=TaskStatus.DONE, B=TaskStatus.ESCALATED)
    state.no_convergence = "no reduction"
    state.tasks["B"].last_failure_signature = "prompt_gap:x"
    finish(state, DEFINITIONS)
    assert state.abort_reason == "no reduction; failing: B (prompt_gap:x)"


def test_an_abort_names_twenty_failing_tasks() -> None:
    manifest = make_manifest([f"T{index}" for index in range(25)])
    state = new_state(manifest, NOW)
    for task in state.tasks.values():
        task.status = TaskStatus.FAILED
    abort(state, "the budget is used up")
    assert str(state.abort_reason).endswith(" and 5 more")
