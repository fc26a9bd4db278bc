"""The stable order (agent-threader-v2 §5 "Stable Ordering Rules")."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemas.manifest import ManifestTask
from tests.threader.builders import make_manifest
from threader.plan import ReadyQueue, find_cycle, stable_order


@st.composite
def graphs(draw: st.DrawFn) -> list[ManifestTask]:
    count = draw(st.integers(1, 15))
    rank = draw(st.permutations(range(count)))
    tasks: list[dict[str, Any]] = []
    for index in range(count):
        earlier = [f"T{other}" for other in range(count) if rank[other] < rank[index]]
        deps = draw(st.lists(st.sampled_from(earlier), max_size=3, unique=True)) if earlier else []
        priority = draw(st.integers(-2, 2))
        tasks.append({"id": f"T{index}", "depends_on": deps, "priority": priority})
    return make_manifest(tasks).tasks


@given(graphs())
def test_dependencies_come_first(tasks: list[ManifestTask]) -> None:
    order = stable_order(tasks)
    assert sorted(order) == sorted(task.id for task in tasks)
    place = {task_id: index for index, task_id in enumerate(order)}
    assert all(place[dep] < place[task.id] for task in tasks for dep in task.depends_on)
    assert find_cycle(tasks) is None


def test_lower_priority_numbers_run_earlier_within_a_depth() -> None:
    tasks = make_manifest(
        [
            {"id": "late", "priority": 9},
            {"id": "first"},
            {"id": "second"},
            {"id": "child", "depends_on": ["late"], "priority": -5},
        ]
    ).tasks
    assert stable_order(tasks) == ["first", "second", "late", "child"]


def test_cycles_are_named() -> None:
    tasks = make_manifest(
        [
            {"id": "A", "depends_on": ["B"]},
            {"id": "B", "depends_on": ["C"]},
            {"id": "C", "depends_on": ["B"]},
        ]
    ).tasks
    assert find_cycle(tasks) == ["B", "C", "B"]
    assert find_cycle(make_manifest([{"id": "A", "depends_on": ["A"]}]).tasks) == ["A", "A"]


def test_a_long_chain_needs_no_recursion() -> None:
    tasks = make_manifest(
        [{"id": f"T{i}", "depends_on": [f"T{i + 1}"] if i < 4999 else []} for i in range(5000)]
    ).tasks
    assert find_cycle(tasks) is None
    assert stable_order(tasks)[0] == "T4999"


@given(graphs(), st.integers(1, 4))
def test_the_queue_hands_out_every_task_once_and_only_when_ready(
    tasks: list[ManifestTask], limit: int
) -> None:
    queue = ReadyQueue(tasks, [])
    needs = {task.id: set(task.depends_on) for task in tasks}
    for task in tasks:
        queue.offer(task.id)
    done: set[str] = set()
    while taken := queue.take(limit):
        for task_id in taken:
            assert needs[task_id] <= done
            assert task_id not in done
        for task_id in taken:
            done.add(task_id)
            for freed in queue.finished(task_id):
                queue.offer(freed)
    assert done == set(needs)


def test_tasks_that_are_not_eligible_keep_their_place() -> None:
    queue = ReadyQueue(make_manifest(["A", "B"]).tasks, [])
    queue.offer("A")
    queue.offer("B")
    queue.offer("A")
    assert queue.take(5, lambda task_id: task_id != "A") == ["B"]
    assert queue.take(5) == ["A"]
    assert queue.rank("B") == 1
