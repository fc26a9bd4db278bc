"""The course of a run, told: each file in scenarios/ is a script and the story that follows it.

To record a new or changed story, run with RECORD=1 and read the difference before committing it.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.run_state import RunState, RunStatus, TaskStatus
from tests.support.growth import grows_linearly
from tests.threader.builders import NOW, Story, make_manifest, outcome_of, record
from threader.initial_state import new_state
from threader.scheduler import Scheduler

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


def read_story(text: str) -> Story:
    """`tasks`: ids with `<A,B` for dependencies; `policy`: key=value; `worker X`: outcomes."""
    tasks: list[dict[str, Any]] = []
    policy: dict[str, Any] = {}
    worker: dict[str, list[str]] = {}
    heals: list[str] = []
    healer = True
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if line.startswith("#") or not value:
            continue
        if key == "tasks":
            for word in value.split():
                name, _, deps = word.partition("<")
                tasks.append({"id": name, "depends_on": deps.split(",") if deps else []})
        elif key == "policy":
            pairs = [pair.split("=") for pair in value.split()]
            policy = {key: told if told.isalpha() else json.loads(told) for key, told in pairs}
        elif key == "healer":
            heals = [word.strip() for word in value.split(",")]
            healer = heals != ["none"]
        else:
            for name in key.removeprefix("worker ").split():
                worker[name] = [word.strip() for word in value.split(",")]
    return Story(make_manifest(tasks, policy), worker, heals, healer=healer)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    script, _, told = path.read_text().partition("---\n")
    lines = "\n".join(read_story(script).play()) + "\n"
    if os.environ.get("RECORD"):
        path.write_text(f"{script}---\n{lines}")
    else:
        assert lines == told


WORDS = st.sampled_from(
    [
        "ok",
        "contract!",
        "prompt_gap one",
        "prompt_gap two",
        "test_error one",
        "real_bug one",
        "blocked_external one",
        "timeout idle",
    ]
)
HEALS = st.sampled_from(["retry", "shrink", "next_epoch", "escalate", "not_fixable", "invalid"])

FEW = settings(max_examples=100, deadline=None)
MANY = settings(max_examples=3_000, deadline=None)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    count = draw(st.integers(1, 12))
    names = [f"T{index}" for index in range(count)]
    tasks = [
        {
            "id": name,
            "depends_on": draw(st.lists(st.sampled_from(names[:index]), max_size=2, unique=True))
            if index
            else [],
            "priority": draw(st.integers(0, 2)),
        }
        for index, name in enumerate(names)
    ]
    schedule = draw(st.sampled_from(["auto", "off", "task", "batch", "epoch"]))
    policy = {"heal_schedule": schedule, "batch_size": draw(st.integers(1, 4))}
    worker = {name: draw(st.lists(WORDS, min_size=1, max_size=4)) for name in names}
    heals = draw(st.lists(HEALS, min_size=1, max_size=4))
    return Story(make_manifest(tasks, policy), worker, heals, healer=True)


def check_budgets(story: Story) -> None:
    """§6: no unbounded loops; §10: an abort has a reason, and no task is dropped."""
    state = story.scheduler.state
    assert state.run_status is not RunStatus.RUNNING
    assert (state.run_status is RunStatus.ABORTED) == bool(state.abort_reason)
    assert len(state.healing_rounds) <= state.policy.max_total_heal_rounds
    assert len(state.tasks) == len(story.scheduler.manifest.tasks)
    if state.run_status is RunStatus.COMPLETED:
        assert all(task.status is not TaskStatus.PENDING for task in state.tasks.values())
    for task in state.tasks.values():
        assert task.contract_retries <= 1
        assert (task.status is TaskStatus.ESCALATED) == bool(task.escalation_reason)
    assert RunState.model_validate_json(state.model_dump_json()) == state


def check_nothing_is_left_out(story: Story) -> None:
    """Whatever healing is worth: every task is tried, unless one that it builds on failed."""
    tasks = story.scheduler.state.tasks
    for task_id, task in tasks.items():
        depends = [tasks[dep] for dep in story.scheduler.tasks.definitions[task_id].depends_on]
        if all(dep.status is TaskStatus.DONE for dep in depends):
            assert task.runs
            assert task.status is not TaskStatus.PENDING


def check_order(story: Story) -> None:
    """§5 "Stable Ordering Rules"."""
    done: set[str] = set()
    for line in story.lines:
        words = line.split()
        if (
            len(words) >= 2
            and words[0] in story.scheduler.tasks.definitions
            and line.startswith("  ")
        ):
            assert set(story.scheduler.tasks.definitions[words[0]].depends_on) <= done
            if words[1] == "DONE":
                done.add(words[0])


@FEW
@given(stories())
def test_every_run_ends_within_its_budgets(story: Story) -> None:
    story.play()
    check_budgets(story)
    check_nothing_is_left_out(story)


@FEW
@given(
    st.sets(st.integers(0, 7)),
    st.sampled_from(["auto", "off", "task", "batch", "epoch"]),
    st.lists(HEALS, min_size=1, max_size=4),
    st.sampled_from([["prompt_gap one"], ["prompt_gap one", "timeout idle"]]),
)
def test_hopeless_tasks_never_cost_others_their_turn(
    hopeless: set[int], schedule: str, heals: list[str], words: list[str]
) -> None:
    names = [f"T{index}" for index in range(8)]
    worker = {f"T{index}": words * 50 for index in hopeless}
    story = Story(make_manifest(names, {"heal_schedule": schedule}), worker, heals, healer=True)
    story.play()
    check_budgets(story)
    check_nothing_is_left_out(story)
    for index, name in enumerate(names):
        assert (story.scheduler.state.tasks[name].status is TaskStatus.DONE) == (
            index not in hopeless
        )


@FEW
@given(stories())
def test_no_task_starts_before_its_dependencies_are_done(story: Story) -> None:
    story.play()
    check_order(story)


@pytest.mark.soak
@MANY
@given(stories())
def test_any_run_keeps_its_budgets_and_its_order(story: Story) -> None:
    story.play()
    check_budgets(story)
    check_nothing_is_left_out(story)
    check_order(story)


def test_a_crash_leaves_running_tasks_pending() -> None:
    manifest = make_manifest(["A"])
    scheduler = Scheduler(manifest, new_state(manifest, NOW))
    scheduler.open_window()
    scheduler.tasks.start("A")
    again = Scheduler(manifest, scheduler.state)
    assert again.state.tasks["A"].status is TaskStatus.PENDING
    assert again.runnable() == ["A"]
    assert again.state.tasks["A"].worker_attempts == 0


def test_an_interrupted_attempt_is_not_counted() -> None:
    manifest = make_manifest(["A"])
    scheduler = Scheduler(manifest, new_state(manifest, NOW))
    scheduler.open_window()
    scheduler.tasks.start("A")
    scheduler.tasks.interrupt("A")
    assert scheduler.runnable() == ["A"]
    assert (scheduler.state.tasks["A"].runs, scheduler.state.tasks["A"].worker_attempts) == (1, 0)


def test_a_resumed_sweep_runs_its_pending_tasks_once() -> None:
    """The tasks of the open window are not handed out a second time as others end."""
    manifest = make_manifest(["A", "B", "C"], {"heal_schedule": "epoch"})
    scheduler = Scheduler(manifest, new_state(manifest, NOW))
    scheduler.open_window()
    again = Scheduler(manifest, scheduler.state)
    assert again.runnable() == ["A", "B", "C"]
    again.tasks.start("A")
    _, joined = again.settle("A", None, [record("A")])
    assert joined == []
    assert again.runnable() == ["B", "C"]


@pytest.mark.soak
def test_ten_thousand_tasks_cost_the_same_first_and_last() -> None:

    def run(tasks: int) -> None:
        manifest = make_manifest([f"T{index}" for index in range(tasks)])
        scheduler = Scheduler(manifest, new_state(manifest, NOW))
        while scheduler.open_window():
            for task_id in scheduler.runnable():
                scheduler.tasks.start(task_id)
                scheduler.settle(task_id, outcome_of("ok"), [record(task_id)])
            scheduler.close_pass(NOW, healer=True)

    assert grows_linearly(run, 1_250)
