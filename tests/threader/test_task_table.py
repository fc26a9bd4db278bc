"""The states of a run's tasks, and which are ready."""

from typing import Any

from schemas.run_state import TaskStatus
from tests.threader.builders import NOW, make_manifest, outcome_of, record
from threader.initial_state import new_state
from threader.task_table import TaskTable

CHAIN: list[str | dict[str, Any]] = ["A", {"id": "B", "depends_on": ["A"]}, "C"]


def make_table() -> TaskTable:
    manifest = make_manifest(CHAIN)
    return TaskTable(manifest, new_state(manifest, NOW))


def test_a_task_is_ready_once_its_dependencies_are_done() -> None:
    table = make_table()
    assert table.take(9) == ["A", "C"]
    table.start("A")
    assert table.settle("A", None, [record("A")]).status is TaskStatus.DONE
    assert table.take(9) == ["B"]
    assert table.changed == {"A"}


def test_an_interrupted_attempt_keeps_its_run_number_only() -> None:
    table = make_table()
    table.take(1)
    assert table.start("A").runs == 1
    table.interrupt("A")
    assert (table["A"].status, table["A"].attempts) == (TaskStatus.PENDING, 0)
    assert table.start("A").runs == 2


def test_a_later_epoch_is_taken_when_it_has_come() -> None:
    manifest = make_manifest(["A"])
    state = new_state(manifest, NOW)
    state.tasks["A"].epoch = 2
    table = TaskTable(manifest, state)
    assert (table.take(9), table.next_epoch()) == ([], 2)
    state.epoch = 2
    assert (table.take(9), table.next_epoch()) == (["A"], None)


def test_retry_queues_what_the_policy_grants_another_attempt() -> None:
    table = make_table()
    for task_id in table.take(9):
        table.start(task_id)
    table.settle("A", outcome_of("prompt_gap one"), [record("A")])
    table.settle("C", outcome_of("blocked_external one"), [record("C")])
    table.retry(["A", "C"])
    assert table.take(9) == ["A"]
    table.escalate({"A": "given up"})
    assert (table["A"].status, table["A"].escalation_reason) == (TaskStatus.ESCALATED, "given up")
