"""The state that a run begins with."""

import pytest

from schemas.run_state import RunStatus, TaskStatus
from tests.threader.builders import NOW, make_manifest
from threader.initial_state import initial_policy, new_state


@pytest.mark.parametrize(
    ("schedule", "strategy", "size"),
    [("auto", "fibonacci", 1), ("task", "fixed", 1), ("batch", "fixed", 4), ("epoch", "fixed", 4)],
)
def test_windows_grow_in_auto_only(schedule: str, strategy: str, size: int) -> None:
    policy = initial_policy(make_manifest(["A"], {"heal_schedule": schedule, "batch_size": 4}))
    assert (policy.batch_strategy, policy.current_batch_size) == (strategy, size)


def test_a_new_run_has_every_task_pending() -> None:
    state = new_state(make_manifest(["A", "B"]), NOW)
    assert (state.run_status, state.started_at) == (RunStatus.RUNNING, NOW)
    assert {task.status for task in state.tasks.values()} == {TaskStatus.PENDING}
    assert all(task.definition for task in state.tasks.values())
