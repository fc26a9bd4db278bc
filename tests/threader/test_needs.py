"""What a run wants of a person."""

from pathlib import Path
from typing import Any

from schemas.manifest import Budget
from schemas.run_state import (
    HealingRound,
    Interruption,
    KeptCopy,
    RunState,
    RunStatus,
    TaskStatus,
    Usage,
)
from tests.threader.builders import NOW, make_manifest, record
from threader.initial_state import new_state
from threader.needs import Place, all_kept, held_back, last_said, needs

TASKS: list[Any] = [
    "A",
    {"id": "B", "depends_on": ["A"]},
    {"id": "C", "depends_on": ["B", "D"]},
    "D",
    {"id": "E", "depends_on": ["D"]},
    "F",
]
MANIFEST = make_manifest(TASKS, {"heal_schedule": "off"})
PLACE = Place(Path("/w/my tasks/manifest.json"), Path("/w/repo"), Path("/w/my tasks/.threader/r"))
COPY = KeptCopy(path="src/a.py", place="backups/A.1/0.edited")


def ended(**statuses: str) -> RunState:
    state = new_state(MANIFEST, NOW)
    for task_id, status in statuses.items():
        state.tasks[task_id].status = TaskStatus(status)
    state.run_status = RunStatus.ABORTED
    return state


def test_what_holds_a_task_back_is_found_however_far_away() -> None:
    state = ended(A="ESCALATED", D="FAILED", F="DONE")
    assert held_back(MANIFEST, state) == {"B": ["A"], "C": ["A", "D"], "E": ["D"]}
    assert held_back(MANIFEST, ended(A="DONE", D="RUNNING")) == {}


def test_a_task_that_the_state_does_not_know_yet_holds_nothing() -> None:
    state = ended(A="BLOCKED")
    del state.tasks["D"]
    assert held_back(MANIFEST, state) == {"B": ["A"], "C": ["A"]}


def test_troubled_tasks_come_with_their_words_and_commands() -> None:
    state = ended(A="FAILED", D="ESCALATED", F="DONE")
    state.tasks["A"].last_failure_signature = "real_bug:x"
    state.tasks["A"].history = [
        record("A").model_copy(update={"said": "The API is gone."}),
        record("A", 2),
    ]
    state.tasks["D"].escalation_reason = "used up"
    escalated, failed, both = needs(MANIFEST, state, PLACE)
    assert (escalated.task, escalated.text, escalated.holds) == ("D", "used up", ["C", "E"])
    assert (failed.text, failed.said, failed.holds) == (
        "real_bug:x", "The API is gone.", ["B", "C"],
    )  # fmt: skip
    assert failed.commands == [
        "cacp thread logs '/w/my tasks/manifest.json' --task A",
        "cacp thread resume '/w/my tasks/manifest.json' --retry A",
    ]
    assert both.commands == ["cacp thread resume '/w/my tasks/manifest.json' --retry-failed"]
    assert last_said(state.tasks["A"]) == "The API is gone."
    state.tasks["D"].last_failure_signature = "test_error:t"
    assert needs(MANIFEST, state, PLACE)[0].text == "used up; it failed with test_error:t"


def test_a_run_that_nobody_runs_is_to_be_resumed() -> None:
    state = ended()
    state.run_status = RunStatus.RUNNING
    resume = ["cacp thread resume '/w/my tasks/manifest.json'"]
    (need,) = needs(MANIFEST, state, PLACE)
    assert (need.text, need.commands) == ("The run has not ended: no process runs it", resume)
    state.interruptions = [Interruption(kind="stopped", cause="no space left", began=NOW)]
    (need,) = needs(MANIFEST, state, PLACE)
    assert need.text == "The run has not ended: no space left"
    waited = Interruption(kind="lock", cause="another git holds index.lock; waiting", began=NOW)
    state.interruptions = [waited]
    (need,) = needs(MANIFEST, state, PLACE)
    assert need.text == "The run has not ended: no process runs it"
    assert needs(MANIFEST, state, PLACE, runner="4711") == []
    state.run_status = RunStatus.ABORTED
    (need,) = needs(MANIFEST, state, PLACE)
    assert (need.text, need.commands) == ("Tasks are left that are ready to run", resume)


def test_a_budget_that_is_used_up_comes_with_a_higher_one() -> None:
    state = ended(A="DONE")
    state.budget = Budget(tokens=100, usd=1.5)
    usage = Usage(input_tokens=150, output_tokens=50, cost_usd=2)
    worked = {"duration_sec": 1.0, "exit_code": 0, "usage": usage}
    state.tasks["A"].history = [record("A").model_copy(update=worked)]
    (need,) = needs(MANIFEST, state, PLACE)
    assert need.text == "The budget is used up"
    assert need.commands[0].endswith("--budget-tokens 400 --budget-usd 4.00")


def test_heal_rounds_that_are_used_up_are_named_once() -> None:
    state = ended(A="ESCALATED", D="ESCALATED")
    state.run_status, state.policy.max_total_heal_rounds = RunStatus.COMPLETED, 2
    state.healing_rounds = [
        HealingRound(
            round_number=number,
            scope="batch",
            window_task_ids=["A"],
            failed_task_ids=["A"],
            decision="RETRY",
            timestamp=NOW,
        )
        for number in (1, 2)
    ]
    run, *tasks = needs(MANIFEST, state, PLACE)
    assert "2 heal rounds are used up (policy.max_total_heal_rounds)" in run.text
    assert run.commands == ["cacp thread resume '/w/my tasks/manifest.json' --retry-failed"]
    assert [need.task for need in tasks] == ["A", "D"]
    state.rounds_forgiven = 1
    assert [need.task for need in needs(MANIFEST, state, PLACE)] == ["A", "D", None]


def test_kept_copies_and_reports_that_did_not_go() -> None:
    state = ended(**dict.fromkeys("ABCDEF", "DONE"))
    state.run_status = RunStatus.COMPLETED
    state.kept = [COPY.model_copy(update={"path": "b c.py"})]
    state.tasks["A"].history = [record("A").model_copy(update={"kept": [COPY]})]
    assert [copy.path for copy in all_kept(state)] == ["b c.py", "src/a.py"]
    found = needs(MANIFEST, state, PLACE, reports={"problems": ["3 reports wait: no key"]})
    assert found[0].commands == [
        "diff -uN '/w/repo/b c.py' '/w/my tasks/.threader/r/backups/A.1/0.edited'"
    ]
    assert found[1].text == COPY.text
    assert found[2].text == "Reports to the node: 3 reports wait: no key"
