"""A run and its provider: outages, what is refused, what is used, and what was cut short."""

import asyncio
from pathlib import Path

import pytest

from schemas.manifest import Budget
from schemas.run_state import RunStatus, TaskStatus
from tests.support.waiting import until
from tests.threader.fakes import adapter_spec
from tests.threader.projects import Bench, events_of, heal_block, result_block
from threader.budget import spent_in
from threader.drive import drive
from threader.errors import Interrupted, NotReady
from threader.load import load_project
from threader.session import resume_run

PROVIDER = """\
n=$(($(cat "$here/asked" 2>/dev/null || echo 0) + 1)); echo $n > "$here/asked"
if [ $n -le {down} ]; then echo 'API Error: 429 rate_limit_error'; exit 1; fi
"""
"""Ahead of every answer: a provider that is down for the first calls, of whomever."""

SHORT = {"outage_pause_sec": 0.01, "outage_longest_pause_sec": 0.02}


def provider_down(bench: Bench, calls: int) -> None:
    script = bench.root / "worker.sh"
    head, rest = script.read_text().split("name=", 1)
    script.write_text(head + PROVIDER.format(down=calls) + "name=" + rest)


@pytest.mark.parametrize("schedule", ["auto", "off", "batch"])
def test_an_outage_of_the_provider_burns_nothing(tmp_path: Path, schedule: str) -> None:
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(10)])
    bench.manifest["policy"] = {"heal_schedule": schedule, "concurrency": 3, **SHORT}
    provider_down(bench, 12)
    opened = bench.open()
    events = events_of(opened)
    state = asyncio.run(opened.go())
    assert {task.status for task in state.tasks.values()} == {TaskStatus.DONE}
    assert {task.worker_attempts for task in state.tasks.values()} == {1}
    assert state.healing_rounds == []
    kinds = [event.kind for event in events]
    assert kinds.index("paused") < kinds.index("resumed")
    pauses = [item for item in state.interruptions if item.kind == "outage"]
    assert [(item.cause, bool(item.ended)) for item in pauses] == [
        ("rate limited: API Error: 429 rate_limit_error", True)
    ]
    assert pauses[0].tries > 1


def test_an_outage_that_meets_the_healer_is_no_heal_round(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], policy=SHORT)
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.answer("healer", "API Error: 529 overloaded_error\n", "API Error: 529\n", heal_block())
    bench.script("healer.1", 'cat "$file"; exit 1')
    bench.script("healer.2", 'cat "$file"; exit 1')
    state = asyncio.run(bench.run())
    assert state.tasks["A"].status is TaskStatus.DONE
    assert [item.decision for item in state.healing_rounds] == ["RETRY"]
    assert state.healer_failures == []
    logs = sorted(path.name for path in (bench.state_dir / "logs").glob("@healer.*"))
    assert logs == ["@healer.1.log", "@healer.2.log", "@healer.3.log"]
    state = asyncio.run(resume_run(load_project(bench.save()))[0].go())
    assert state.aside.invocations == 0, "its provider did nothing for it"


def test_an_outage_without_end_stops_the_run_and_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], policy={**SHORT, "outage_limit_sec": 0.05})
    provider_down(bench, 10_000)
    state = asyncio.run(bench.run())
    assert state.run_status == "ABORTED"
    assert "rate limited: API Error: 429" in (state.abort_reason or "")
    assert {task.status for task in state.tasks.values()} == {TaskStatus.PENDING}
    provider_down(bench, 0)
    (bench.root / "asked").write_text("10000")
    opened, _ = resume_run(load_project(bench.save()))
    assert asyncio.run(opened.go()).run_status == "COMPLETED"


@pytest.mark.parametrize("who", ["A", "healer"])
def test_a_quota_that_is_used_up_ends_the_run_at_once(tmp_path: Path, who: str) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], policy=SHORT)
    if who == "healer":
        bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.answer("healer", heal_block())
    bench.script(who, "[ -e $here/paid ] || { echo 'ERROR: Quota exceeded. Check your plan and "
                 "billing details.'; exit 1; }")  # fmt: skip
    code, summary = drive(bench.open(), plain=True, compat=None, as_json=False)
    assert (code, summary["run_status"]) == (1, "ABORTED")
    assert "its quota or credit is used up: ERROR: Quota exceeded." in summary["abort_reason"]
    assert (bench.calls(who), bench.calls("B")) == (2, 0), "once more, to be sure"
    assert "quota or credit is used up" in (bench.state_dir / "report.md").read_text()
    (bench.root / "paid").touch()
    opened, _ = resume_run(load_project(bench.save()))
    assert drive(opened, plain=True, compat=None, as_json=False)[0] == 0


def test_a_program_that_crashes_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """It says what an outage looks like, but is no agent's CLI: some pauses, then it has failed."""
    bench = Bench(tmp_path / "p", ["A", "B"], policy={**SHORT, "heal_schedule": "off"})
    bench.answer("A", "connect ECONNREFUSED 127.0.0.1:5432\n")
    bench.script("A", 'cat "$file"; exit 1')
    state = asyncio.run(bench.run())
    assert state.tasks["A"].status is TaskStatus.FAILED
    assert state.tasks["A"].last_failure_class == "transient_infra"
    assert state.tasks["B"].status is TaskStatus.DONE


def test_a_healer_that_crashes_has_not_reached_its_provider(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], policy=SHORT)
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", "[ $n != 1 ] || { echo 'API Error: 529'; exit 1; }; exit 3")
    opened = bench.open()
    events = events_of(opened)
    asyncio.run(opened.go())
    kinds = [event.kind for event in events]
    assert kinds.index("resumed") > kinds.index("window", kinds.index("healing")), "A answered"


def test_a_pause_can_be_seen_and_stopped(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], policy={"outage_pause_sec": 3600})
    provider_down(bench, 10_000)
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until(lambda: opened.state.interruptions)
        shown = opened.store.load().interruptions[0]
        assert (shown.kind, shown.ended) == ("outage", None)
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert opened.state.tasks["A"].status is TaskStatus.PENDING


USED = '{"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 100}}'


def test_a_budget_stops_a_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B", "C"], policy={"budget": {"tokens": 2000}})
    for name in "ABC":
        bench.answer(name, f"{USED}\n{result_block(name)}")
    opened = bench.open()
    state = asyncio.run(opened.go())
    assert state.run_status == "ABORTED"
    assert (state.abort_reason or "").startswith("the budget of 2 k tokens is used up (2 k tokens")
    assert [task.status for task in state.tasks.values()] == ["DONE", "DONE", "PENDING"]
    assert opened.scheduler.ledger.spent == spent_in(state)
    project = load_project(bench.save())
    again = asyncio.run(resume_run(project)[0].go())
    assert (again.run_status, bench.calls("C")) == ("ABORTED", 0)
    more = asyncio.run(resume_run(project, budget=Budget(tokens=9000))[0].go())
    assert (more.run_status, more.tasks["C"].status) == ("COMPLETED", "DONE")
    assert [item.kind for item in more.interruptions] == ["ended", "ended"]


def test_what_is_under_way_when_the_budget_ends_goes_on(tmp_path: Path) -> None:
    policy = {"budget": {"tokens": 1}, "concurrency": 2, "heal_schedule": "off"}
    bench = Bench(tmp_path / "p", ["A", "B", "C"], policy=policy)
    for name in "ABC":
        bench.answer(name, f"{USED}\n{result_block(name)}")
    bench.script("B", f"until [ -e {bench.state_dir}/tasks/A.json ]; do sleep 0.05; done")
    state = asyncio.run(bench.run())
    assert [task.status for task in state.tasks.values()] == ["DONE", "DONE", "PENDING"]


def test_the_healer_is_not_asked_beyond_the_budget(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], policy={"budget": {"tokens": 1000}})
    bench.answer("A", f"{USED}\n{result_block('A', status='FAILED')}")
    state = asyncio.run(bench.run())
    assert "is used up" in (state.abort_reason or "")
    assert bench.calls("healer") == 0
    assert state.tasks["A"].status is TaskStatus.FAILED


def test_a_budget_that_cannot_be_kept_is_found_out_before_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], policy={"budget": {"usd": 5}})
    bench.manifest["worker"] = adapter_spec("claude", "text", bench.root)
    with pytest.raises(NotReady, match="worker claude with the output text reports neither"):
        asyncio.run(bench.run())
    assert bench.calls("A") == 0


def test_a_budget_that_nothing_is_told_of_stops_the_run(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "p", [*"ABCDEF"], policy={"budget": {"usd": 5}, "heal_schedule": "off"}
    )
    state = asyncio.run(bench.run())
    assert "cannot be kept: 3 invocations reported no cost" in (state.abort_reason or "")
    assert [task.status for task in state.tasks.values()].count(TaskStatus.DONE) == 3


@pytest.mark.parametrize("schedule", ["auto", "off"])
def test_a_prompt_that_is_too_large_fails_its_task_at_once(tmp_path: Path, schedule: str) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], policy={"heal_schedule": schedule})
    bench.answer("A", "Error: 429 Request too large for m on tokens per min (TPM): Limit 30000, "
                 "Requested 36278.\n")  # fmt: skip
    bench.script("A", 'cat "$file"; exit 1')
    state = asyncio.run(bench.run())
    task = state.tasks["A"]
    assert (task.status, task.last_failure_class) == ("ESCALATED", "prompt_too_large")
    assert "refuses the prompt as too large: Error: 429" in (task.escalation_reason or "")
    assert (bench.calls("A"), bench.calls("healer")) == (1, 0)
    assert state.interruptions == []
    assert state.tasks["B"].status is TaskStatus.DONE


def test_a_healers_prompt_that_is_too_large_is_no_outage(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", "echo 'API Error: 400 prompt is too long: 9 tokens > 8'; exit 1")
    state = asyncio.run(bench.run())
    assert state.tasks["A"].status is TaskStatus.FAILED
    assert state.healer_failures[0].note.startswith("the provider refuses the prompt as too large")
    assert state.interruptions == []


def test_a_stop_and_its_resume_are_an_interruption(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.script("A", f"echo '{USED}'; touch $here/began; [ $n != 1 ] || sleep 60")
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until((bench.root / "began").exists)
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    state = asyncio.run(resume_run(load_project(bench.save()))[0].go())
    (item,) = state.interruptions
    assert (item.kind, item.cause, item.tasks) == ("stopped", "stopped by a signal", ["A"])
    assert item.began < (item.ended or "")
    spent = spent_in(state)
    assert (spent.invocations, spent.input_tokens) == (2, 1800), "what it cut short was used too"


def test_what_a_healer_used_counts_however_it_was_cut_short(tmp_path: Path) -> None:
    """By an outage after it was served, by a stop, and by a crash."""
    bench = Bench(tmp_path / "p", ["A"], policy=SHORT)
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.answer("healer", heal_block())
    down = '{"type": "turn.failed", "error": {"message": "429 Too Many Requests"}}'
    bench.script(
        "healer",
        f"echo '{USED}'; [ $n != 1 ] || {{ echo '{down}'; exit 1; }}\n"
        "touch $here/asked.$n; [ $n != 2 ] || sleep 60",
    )
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until((bench.root / "asked.2").exists)
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert opened.scheduler.ledger.spent == spent_in(opened.state)
    assert (opened.state.aside.invocations, opened.state.aside.input_tokens) == (2, 1800)
    (bench.state_dir / "logs" / "@healer.7.log").write_text(USED)
    state = asyncio.run(resume_run(load_project(bench.save()))[0].go())
    assert state.tasks["A"].status is TaskStatus.DONE
    assert (state.aside.invocations, state.aside.input_tokens) == (3, 2700)
    assert spent_in(state).input_tokens == 3600
    state = asyncio.run(resume_run(load_project(bench.save()))[0].go())
    assert spent_in(state).input_tokens == 3600, "nothing is counted twice"


def test_what_a_healer_used_until_its_time_was_up_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], policy={"healer_timeout_sec": 1})
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", f"echo '{USED}'; sleep 60")
    state = asyncio.run(bench.run())
    assert spent_in(state).input_tokens == 900 * bench.calls("healer") > 0


def test_a_crash_and_its_resume_are_an_interruption(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    opened = bench.open()
    asyncio.run(opened.go())
    state = opened.store.load()
    state.run_status = RunStatus.RUNNING
    state.tasks["B"].status = TaskStatus.RUNNING
    state.tasks["B"].history = []
    (bench.state_dir / "logs" / "B.worker.1.log").write_text(USED)
    for path in (bench.state_dir / "tasks").iterdir():
        path.unlink()
    opened.store.write_state(state, ["B"])
    project = load_project(bench.save())
    state = asyncio.run(resume_run(project)[0].go())
    (item,) = state.interruptions
    assert (item.kind, item.tasks) == ("killed", ["B"])
    assert state.tasks["B"].status is TaskStatus.DONE
    assert (state.aside.invocations, state.aside.input_tokens) == (1, 900)
