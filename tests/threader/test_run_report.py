"""How a run stands, as it tells a node."""

from schemas.manifest import NodeSpec
from schemas.run_state import HealingRound, RunStatus, TaskStatus, WindowRecord, WindowState
from schemas.thread_runs import TASKS_MAX, ReportRunParams
from tests.threader.builders import NOW, make_manifest, record
from threader.events import RunEvent
from threader.initial_state import new_state
from threader.run_report import run_report, waiting_for

NODE = NodeSpec.model_validate(
    {"url": "http://127.0.0.1:1", "project_id": "p", "agent_id": "aid://example.com/a@1.0.0"}
)


def test_a_report_is_what_the_node_takes() -> None:
    manifest = make_manifest(["A", "B", "C"])
    state = new_state(manifest, NOW)
    state.tasks["B"].status = TaskStatus.FAILED
    state.tasks["B"].last_failure_signature = "build: /home/me/work/x.py\nline two"
    state.tasks["C"].status = TaskStatus.DONE
    state.tasks["C"].history.append(record("C").model_copy(update={"said": "did it"}))
    state.window = WindowState(number=2, task_ids=["A", "B"], passes=2, heal_rounds=1)
    verdict = {"number": 1, "attempt": 1, "size": 1, "done": 1, "failure_rate": 0.0}
    state.windows.append(WindowRecord(**verdict, next_batch_size=2, verdict="grows", timestamp=NOW))
    heal = {"round_number": 1, "scope": "batch", "window_task_ids": ["B"], "window": 2}
    rest = {"failed_task_ids": ["B"], "decision": "RETRY", "timestamp": NOW, "converging": True}
    state.healing_rounds.append(HealingRound.model_validate(heal | rest))
    call = run_report(NODE, state, "", {"B": "c-1"})
    report = ReportRunParams.model_validate(call.params, by_alias=True)
    assert [task.id for task in report.tasks] == ["B", "A", "C"]
    assert report.tasks[0].contract_id == "c-1"
    assert report.tasks[0].problem == "build: …/x.py line two"
    assert report.tasks[2].said == "did it"
    assert report.counts == {"PENDING": 1, "FAILED": 1, "DONE": 1}
    assert report.window is not None
    assert (report.window.number, report.window.attempt, report.window.heal_rounds) == (2, 2, 1)
    assert report.windows[0].verdict == "grows"
    assert report.heals[0].converging is True


def test_a_large_run_tells_what_matters_first() -> None:
    manifest = make_manifest([f"T{number}" for number in range(1000)])
    state = new_state(manifest, NOW)
    state.tasks["T999"].status = TaskStatus.RUNNING
    report = ReportRunParams.model_validate(run_report(NODE, state, "", {}).params, by_alias=True)
    assert len(report.tasks) == TASKS_MAX
    assert report.tasks[0].id == "T999"
    assert report.counts == {"PENDING": 999, "RUNNING": 1}


def test_a_run_says_why_it_waits_or_ended() -> None:
    state = new_state(make_manifest(["A"]), NOW)
    assert "reason" not in run_report(NODE, state, "", {}).params
    assert run_report(NODE, state, "the provider is away", {}).params["reason"] == (
        "the provider is away"
    )
    state.run_status, state.abort_reason = RunStatus.ABORTED, "no budget"
    assert run_report(NODE, state, "", {}).params["reason"] == "no budget"


def test_a_run_waits_until_it_resumes() -> None:
    assert waiting_for(RunEvent("blocked", "waits 5 min")) == "waits 5 min"
    assert waiting_for(RunEvent("resumed", "goes on")) == ""
