"""The texts of what happens in a run."""

from schemas.run_state import RunStatus, TaskState, TaskStatus, WindowState
from tests.threader.builders import NOW, make_manifest
from threader.events import counts_text, end_text, task_text, verdict_text, window_text
from threader.initial_state import new_state
from threader.windows import Action, WindowVerdict


def test_a_window_says_its_pass_from_the_second_on() -> None:
    window = WindowState(number=3, task_ids=["A", "B"])
    assert window_text(window) == "window 3: 2 tasks"
    window.passes = 2
    assert window_text(window) == "window 3, pass 2: 2 tasks"


def test_a_task_says_how_it_ended() -> None:
    signature = "prompt_gap:x"
    failed = TaskState(status=TaskStatus.FAILED, last_failure_signature=signature)
    again = TaskState(status=TaskStatus.PENDING, last_failure_signature=signature)
    assert task_text("A", TaskState(status=TaskStatus.DONE)) == "A DONE"
    assert task_text("A", again) == "A runs again: prompt_gap:x"
    assert task_text("A", failed) == "A FAILED: prompt_gap:x"


def test_a_verdict_names_whom_it_escalates() -> None:
    verdict = WindowVerdict(Action.ADVANCE, "clean", 0.5, 1, 0, escalations={"A": "given up"})
    assert verdict_text(verdict) == "clean; failure rate 50%; A ESCALATED: given up"


def test_the_end_counts_the_tasks() -> None:
    state = new_state(make_manifest(["A", "B"]), NOW)
    state.tasks["A"].status = TaskStatus.DONE
    state.run_status, state.abort_reason = RunStatus.ABORTED, "out of budget"
    assert end_text(state) == "ABORTED: 1 DONE, 1 PENDING: out of budget"
    assert counts_text(new_state(make_manifest([]), NOW)) == "no tasks"
