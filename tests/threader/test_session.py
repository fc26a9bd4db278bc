"""Opening runs (agent-threader-v2 §10 "Resume Semantics")."""

import asyncio
from pathlib import Path

import pytest

from schemas.manifest import Budget
from schemas.run_state import TaskStatus
from tests.threader.projects import Bench, heal_block, result_block
from threader.errors import Interrupted, NoSuchRun, RunExists, RunLocked, ThreaderError
from threader.load import load_project
from threader.overview import overview, overview_lines
from threader.report import write_report
from threader.session import load_state, resume_run, start_run
from threader.transaction import FileTransaction
from threader.writes import FileChange


def test_a_run_is_not_started_twice_by_accident(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    asyncio.run(bench.run())
    project = load_project(bench.save())
    with pytest.raises(RunExists, match="--fresh"):
        start_run(project)
    asyncio.run(start_run(project, fresh=True).go())
    assert bench.calls("A") == 2
    assert (bench.state_dir.parent / "run-1.old-1" / "state.json").exists()
    assert load_state(project).tasks["A"].status is TaskStatus.DONE


def test_one_process_at_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    first = bench.open()
    first.store.prepare()
    first.store.lock.acquire()
    with pytest.raises(RunLocked):
        asyncio.run(bench.open().go())
    assert bench.calls("A") == 0
    first.store.lock.release()


def test_resuming_what_never_ran(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    with pytest.raises(NoSuchRun):
        resume_run(load_project(bench.save()))


def test_the_operator_retries_an_escalated_task(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}])
    failed = result_block("A", status="FAILED", failure_class="real_bug")
    bench.answer("A", failed, result_block("A"))
    state = asyncio.run(bench.run())
    assert state.run_status == "ABORTED"
    assert "A did not end DONE, which holds back 1 of 2" in (state.abort_reason or "")
    project = load_project(bench.save())
    opened, _ = resume_run(project)
    assert asyncio.run(opened.go()).tasks["A"].status is TaskStatus.ESCALATED
    assert bench.calls("A") == 1
    with pytest.raises(ThreaderError, match="Z is not a task"):
        resume_run(project, retry=["Z"])
    opened, _ = resume_run(project, retry=["A"])
    state = asyncio.run(opened.go())
    assert [task.status for task in state.tasks.values()] == ["DONE", "DONE"]
    assert state.run_status == "COMPLETED"


def test_reconcile_runs_what_changed(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B", "C"])
    asyncio.run(bench.run())
    (bench.root / "prompts" / "new.md").write_text("Do it anew.")
    bench.manifest["tasks"][1]["prompt_ref"] = "prompts/new.md"
    del bench.manifest["tasks"][2]
    opened, changes = resume_run(load_project(bench.save()), reconciling=True)
    state = asyncio.run(opened.go())
    assert changes.lines() == ["removed: C", "changed: B"]
    assert (bench.calls("A"), bench.calls("B")) == (1, 2)
    assert list(state.tasks) == ["A", "B"]


def test_starting_over_undoes_what_a_crash_left_half_done(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    asyncio.run(bench.run())
    changes = [FileChange("half.txt", None, b"half")]
    crashed = FileTransaction(bench.workspace, bench.state_dir / "backups" / "A.2")
    crashed.begin(changes)
    crashed.apply(changes)
    (bench.state_dir / "run.json").write_text("{")
    asyncio.run(start_run(load_project(bench.save()), fresh=True).go())
    assert bench.tree() == {}


def crash_with_an_edit(bench: Bench) -> None:
    """Half an attempt of A is on disk, and somebody has edited the file that it wrote."""
    asyncio.run(bench.run())
    changes = [FileChange("half.txt", None, b"half")]
    crashed = FileTransaction(bench.workspace, bench.state_dir / "backups" / "A.2")
    crashed.begin(changes)
    crashed.apply(changes)
    (bench.workspace / "half.txt").write_text("mine")


def test_what_a_crash_kept_of_a_persons_edit_stays_known(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    crash_with_an_edit(bench)
    project = load_project(bench.save())
    for _ in range(2):
        asyncio.run(resume_run(project)[0].go())
    state = load_state(project)
    assert [(copy.path, copy.place) for copy in state.kept] == [
        ("half.txt", "backups/A.2/0.edited")
    ]
    told = "\n".join(overview_lines(overview(project, state)))
    assert "half.txt was edited" in told
    assert f"$ diff -uN {bench.workspace}/half.txt {bench.state_dir}/backups/A.2/0.edited" in told
    for page in write_report(project, state):
        assert "half.txt was edited" in page.read_text()


def test_a_run_that_starts_over_knows_what_the_old_one_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    crash_with_an_edit(bench)
    project = load_project(bench.save())
    asyncio.run(start_run(project, fresh=True).go())
    (copy,) = load_state(project).kept
    assert (bench.state_dir / copy.place).read_text() == "mine"


def test_a_budget_that_is_given_stays_until_the_manifest_is_reconciled(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    project = load_project(bench.save())
    asyncio.run(start_run(project, budget=Budget(usd=3)).go())
    opened, _ = resume_run(project, budget=Budget(tokens=7))
    assert opened.state.budget == Budget(tokens=7, usd=3)
    bench.manifest["policy"] = {"budget": {"usd": 9}}
    opened, _ = resume_run(load_project(bench.save()), reconciling=True)
    assert opened.state.budget == Budget()


def test_a_state_that_moved_on_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    slow = bench.open()
    asyncio.run(bench.run())
    late, _ = resume_run(load_project(bench.save()))
    asyncio.run(resume_run(load_project(bench.save()))[0].go())
    for opened in (slow, late):
        with pytest.raises(RunLocked, match="since it was read"):
            asyncio.run(opened.go())
    assert bench.calls("A") == 1


def test_a_retry_while_the_window_waits_for_the_healer(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", "sleep 30")
    opened = bench.open()
    opened.listeners.append(lambda event, _: opened.stop.set() if event.kind == "healing" else None)
    with pytest.raises(Interrupted):
        asyncio.run(opened.go())
    bench.answer("A", result_block("A"))
    opened, _ = resume_run(load_project(bench.save()), retry=["A"])
    assert asyncio.run(opened.go()).tasks["A"].status is TaskStatus.DONE
    assert bench.calls("healer") <= 1


def test_what_a_person_retries_has_its_heal_rounds_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], policy={"max_total_heal_rounds": 1})
    failed = [result_block(name, status="FAILED") for name in "AB"]
    bench.answer("A", *[failed[0]] * 3, result_block("A"))
    bench.answer("B", failed[1], result_block("B"))
    bench.answer("healer", heal_block())
    state = asyncio.run(bench.run())
    assert [task.status for task in state.tasks.values()] == ["ESCALATED", "ESCALATED"]
    project = load_project(bench.save())
    told = "\n".join(overview_lines(overview(project, state)))
    assert "The run's 1 heal rounds are used up (policy.max_total_heal_rounds)" in told
    state = asyncio.run(resume_run(project, retry_failed="*")[0].go())
    assert [task.status for task in state.tasks.values()] == ["DONE", "DONE"]
    assert (state.run_status, len(state.healing_rounds)) == ("COMPLETED", 2)
    told = "\n".join(overview_lines(overview(project, state)))
    assert "heal rounds are used up" not in told
    assert "2 heal rounds of 2" in write_report(project, state)[0].read_text()


def test_all_that_failed_starts_afresh_by_a_glob(tmp_path: Path) -> None:
    names = ["WP-1", "WP-2", "X-1"]
    bench = Bench(tmp_path / "p", [*names], policy={"heal_schedule": "off"})
    for name in names:
        failed = result_block(name, status="FAILED", failure_class="real_bug")
        bench.answer(name, failed, result_block(name))
    asyncio.run(bench.run())
    project = load_project(bench.save())
    with pytest.raises(ThreaderError, match=r"Z\* matches no task"):
        resume_run(project, retry_failed="Z*")
    opened, _ = resume_run(project, retry_failed="WP-*")
    done = asyncio.run(opened.go()).tasks
    assert [done[name].status for name in names] == ["DONE", "DONE", "ESCALATED"]
    opened, _ = resume_run(project, retry_failed="*")
    asyncio.run(opened.go())
    assert [bench.calls(name) for name in names] == [2, 2, 2]
