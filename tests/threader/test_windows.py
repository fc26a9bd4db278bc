"""Windows and PBH (agent-threader-v2 §6). Whole runs are told in scenarios/."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.run_state import TaskState, TaskStatus
from tests.threader.builders import make_manifest
from threader.initial_state import initial_policy
from threader.windows import failure_rate, grow, isolate, shrink, sweeps, window_limit


def test_growth_follows_the_fibonacci_sequence() -> None:
    sizes = [1]
    for _ in range(6):
        sizes.append(grow(sizes[-1], 1000))
    assert sizes == [1, 2, 3, 5, 8, 13, 21]
    assert grow(8, 10) == 10


@given(st.integers(1, 5000))
def test_shrink_undoes_growth(size: int) -> None:
    assert shrink(grow(size, 10**9)) <= size
    assert 1 <= shrink(size) <= size
    assert shrink(size) < size or size == 1


def task(status: str, *, healable: bool = False, signature: str = "") -> TaskState:
    return TaskState(
        status=TaskStatus(status), healable=healable, last_failure_signature=signature or None
    )


def test_failure_rate_counts_healable_tasks_only() -> None:
    """§6: BLOCKED and non-healable failures are outside; nothing attempted is rate 0."""
    tasks = [
        task("DONE"),
        task("DONE"),
        task("FAILED", healable=True),
        task("BLOCKED"),
        task("ESCALATED"),
    ]
    assert failure_rate(tasks) == pytest.approx(1 / 3)
    assert failure_rate([task("BLOCKED"), task("ESCALATED")]) == 0


@pytest.mark.parametrize(
    ("schedule", "limit"), [("auto", 1), ("task", 1), ("batch", 5), ("epoch", 40), ("off", 40)]
)
def test_window_limits(schedule: str, limit: int) -> None:
    policy = initial_policy(make_manifest(["A"], {"heal_schedule": schedule}))
    assert window_limit(policy, 40) == limit
    assert sweeps(policy) == (schedule in ("epoch", "off"))


def test_isolation_tries_shared_signatures_first_and_once() -> None:
    tasks = {
        "A": task("FAILED", signature="x:lone"),
        "B": task("FAILED", signature="x:shared"),
        "C": task("FAILED", signature="x:shared"),
    }
    assert isolate(["A", "B", "C"], tasks, 5) == ["B", "A"]
    assert isolate(["A", "B", "C"], tasks, 1) == ["B"]
