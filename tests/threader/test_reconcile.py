"""Resume and reconcile (agent-threader-v2 §10 "Resume Semantics")."""

from typing import Any

from schemas.run_state import RunState, RunStatus, TaskStatus, Usage, WindowState
from tests.threader.builders import NOW, make_manifest, record
from threader.budget import spent_in
from threader.initial_state import new_state
from threader.reconcile import differences, fresh, reconcile, resume

TASKS: list[dict[str, Any]] = [
    {"id": "A"},
    {"id": "B", "depends_on": ["A"]},
    {"id": "C"},
    {"id": "D"},
]


def done_state() -> RunState:
    state = new_state(make_manifest(TASKS), NOW)
    for task in state.tasks.values():
        task.status = TaskStatus.DONE
        task.runs = 1
    return state


def changed(task_id: str, **fields: Any) -> list[dict[str, Any]]:
    return [{**task, **fields} if task["id"] == task_id else task for task in TASKS]


def test_changed_tasks_and_what_builds_on_them_run_again() -> None:
    state = done_state()
    changes = reconcile(state, make_manifest(changed("A", verify_profile="other")))
    assert (changes.changed, changes.dependents) == (["A"], ["B"])
    statuses = {key: task.status for key, task in state.tasks.items()}
    assert statuses == {"A": "PENDING", "B": "PENDING", "C": "DONE", "D": "DONE"}
    assert state.tasks["A"].runs == 1, "log numbers go on"


def test_added_and_removed_tasks() -> None:
    state = done_state()
    manifest = make_manifest([*TASKS[:3], {"id": "E"}])
    changes = reconcile(state, manifest)
    assert (changes.added, changes.removed) == (["E"], ["D"])
    assert list(state.tasks) == ["A", "B", "C", "E"]
    assert state.tasks["E"].status is TaskStatus.PENDING
    assert differences(state, manifest).lines() == []


def test_escalated_tasks_stay_until_the_operator_says_so() -> None:
    state = done_state()
    state.tasks["A"].status = TaskStatus.ESCALATED
    manifest = make_manifest(changed("A", prompt_ref="other.md"))
    reconcile(state, manifest)
    resume(state, manifest)
    assert [state.tasks["A"].status] == [TaskStatus.ESCALATED]
    resume(state, manifest, retry=["A"])
    assert [state.tasks["A"].status] == [TaskStatus.PENDING]


def test_resume_retries_what_policy_allows() -> None:
    state = done_state()
    state = state.model_copy(update={"run_status": RunStatus.ABORTED, "abort_reason": "why"})
    left = {"status": TaskStatus.FAILED, "healable": True, "last_failure_class": "timeout"}
    state.tasks["A"] = state.tasks["A"].model_copy(update={**left, "worker_attempts": 1})
    state.tasks["C"] = state.tasks["C"].model_copy(update={**left, "worker_attempts": 2})
    state.tasks["D"] = state.tasks["D"].model_copy(update={"status": TaskStatus.BLOCKED})
    resume(state, make_manifest(TASKS))
    statuses = [state.tasks[key].status for key in "ACD"]
    assert statuses == ["PENDING", "FAILED", "BLOCKED"]
    assert (state.run_status, state.abort_reason) == (RunStatus.RUNNING, None)


def test_the_window_keeps_what_is_still_its_own() -> None:
    state = done_state()
    state.window = WindowState(number=3, task_ids=["A", "C"])
    reconcile(state, make_manifest(changed("A", prompt_ref="new.md")))
    assert state.window is not None
    assert state.window.task_ids == ["C"]
    reconcile(state, make_manifest(changed("C", prompt_ref="new.md")))
    assert state.window is None


def test_the_batch_size_survives_unless_the_schedule_changes() -> None:
    state = done_state()
    state.policy.current_batch_size = 8
    reconcile(state, make_manifest(TASKS, {"concurrency": 3}))
    assert (state.policy.current_batch_size, state.policy.concurrency) == (8, 3)
    reconcile(state, make_manifest(TASKS, {"heal_schedule": "task"}))
    assert state.policy.current_batch_size == 1


def test_fresh_keeps_history() -> None:
    task = done_state().tasks["A"]
    again = fresh(task)
    assert (again.status, again.runs, again.revision) == ("PENDING", 1, task.revision + 1)


def test_what_was_spent_on_a_task_that_is_gone_stays_spent() -> None:
    state = new_state(make_manifest(["A", "B"]), NOW)
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=1.0)
    worked = {"usage": usage, "duration_sec": 1.0, "exit_code": 0}
    for name in "AB":
        state.tasks[name].history = [record(name).model_copy(update=worked)]
    before = spent_in(state)
    reconcile(state, make_manifest(["A"]))
    assert (spent_in(state), state.aside.cost_usd) == (before, 1.0)
