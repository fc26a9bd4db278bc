"""The orchestrator (agent-threader-v2 §5)."""

import asyncio
import re
import subprocess
import time
from pathlib import Path

import pytest

from schemas.run_state import TaskStatus
from tests.threader.projects import Bench, heal_block, is_alive, result_block, write
from threader.drive import drive
from threader.errors import NotReady, RunLocked
from threader.files import sole_user
from threader.load import load_project
from threader.session import load_state, resume_run
from threader.signatures import one_line


def test_an_empty_manifest_completes(tmp_path: Path) -> None:
    assert asyncio.run(Bench(tmp_path / "p", []).run()).run_status == "COMPLETED"


def test_the_nodes_key_is_not_the_workers_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_KEY", "cacp_sk_secret")
    node = {"url": "http://n", "project_id": "p", "agent_id": "a", "key_env": "NODE_KEY"}
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "look"}], node=node)
    bench.script("A", "env >> seen")
    bench.profile("look", ("test", "env >> seen"))
    asyncio.run(bench.run())
    seen = (bench.workspace / "seen").read_text()
    assert seen.count("CACP_THREAD_RUN=") == 2
    assert "cacp_sk_secret" not in seen


@pytest.mark.parametrize("schedule", ["auto", "batch", "task", "epoch"])
def test_hopeless_tasks_and_a_healer_that_lies_cost_no_other_task(
    tmp_path: Path, schedule: str
) -> None:
    names = [f"T{index}" for index in range(8)]
    bench = Bench(tmp_path / "p", [*names], policy={"heal_schedule": schedule})
    for name in names[:2]:
        bench.answer(name, result_block(name, status="FAILED", summary="missing import"))
    bench.answer("healer", heal_block())
    code, summary = drive(bench.open(), plain=True, compat=None, as_json=False)
    assert (code, summary["tasks"]) == (1, {"ESCALATED": 2, "DONE": 6})
    assert summary["run_status"] == "ABORTED"
    page = (bench.state_dir / "report.md").read_text()
    assert re.search(r"\*\*Stopped:\*\* .*heal rounds; failing: T0 .*, T1 ", page)


@pytest.mark.soak
def test_tasks_cost_little_of_the_runners_own_time(tmp_path: Path) -> None:
    """Under 5 ms of CPU each on an idle machine; the bound leaves room for a busy one."""
    count = 300
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(count)])
    block = result_block("%s").replace("\n", "\\n")
    (bench.root / "noop.sh").write_text(f"printf '{block}' $CACP_TASK_ID $CACP_TASK_ID\n")
    script = ["/bin/sh", str(bench.root / "noop.sh")]
    bench.manifest["worker"] = {"adapter": "command", "command": script}
    opened = bench.open()
    began = time.process_time()
    state = asyncio.run(opened.go())
    assert all(task.status is TaskStatus.DONE for task in state.tasks.values())
    assert (time.process_time() - began) / count < 0.02
    assert list((bench.state_dir / "staging").iterdir()) == []


def test_a_daemon_does_not_outlive_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    daemon = f"setsid sh -c 'echo $$ > {bench.root}/pid; exec sleep 60' >/dev/null 2>&1 &"
    bench.script("A", f"{daemon} sleep 0.2")
    asyncio.run(bench.run())
    assert not is_alive(int((bench.root / "pid").read_text()))


def test_two_manifests_do_not_share_a_workspace_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    with sole_user(bench.workspace), pytest.raises(RunLocked, match="this workspace"):
        asyncio.run(bench.run())
    assert asyncio.run(bench.run()).tasks["A"].status is TaskStatus.DONE


def test_the_workers_own_words_are_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], healer=None)
    bench.answer("A", result_block("A", summary="Did it.", evidence={"notes": ["But slowly."]}))
    bench.answer("B", "I would rather not.\n")
    state = asyncio.run(bench.run())
    assert state.tasks["A"].history[0].said == "Did it.\nBut slowly."
    assert {record.said for record in state.tasks["B"].history} == {"I would rather not."}


@pytest.mark.parametrize("trouble", ["no worker", "dirty"])
def test_a_resume_that_is_refused_renews_the_report(tmp_path: Path, trouble: str) -> None:
    bench = Bench(tmp_path / "p", ["A"], isolation="worktree", healer=None)
    commit = "git init -q; echo 1 > f; git add .; git -c user.name=t -c user.email=t@l commit -qm x"
    subprocess.run(["/bin/sh", "-c", commit], cwd=bench.workspace, check=True)
    bench.answer("A", result_block("A", status="BLOCKED"), result_block("A"))
    assert drive(bench.open(), plain=True, compat=None, as_json=False)[0] == 1
    if trouble == "dirty":
        (bench.workspace / "f").write_text("2")
    else:
        bench.manifest["worker"] = {"adapter": "command", "command": ["./nowhere"]}
    project = load_project(bench.save())
    for _ in range(2):
        opened, _ = resume_run(project, reconciling=True, retry=["A"])
        with pytest.raises(NotReady) as refused:
            drive(opened, plain=True, compat=None, as_json=False)
        report = (bench.state_dir / "report.md").read_text()
        assert one_line(str(refused.value)) in report
    assert [item.kind for item in load_state(project).interruptions] == [
        "ended", "stopped", "stopped",
    ]  # fmt: skip


def test_a_first_start_that_is_refused_leaves_no_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], worker=None)
    with pytest.raises(NotReady):
        drive(bench.open(), plain=True, compat=None, as_json=False)
    assert not bench.open().store.exists()


def test_a_run_that_stops_in_its_midst_has_a_report_that_says_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], isolation="worktree", healer=None)
    commit = "git init -q; git -c user.name=t -c user.email=t@l commit -q --allow-empty -m x"
    subprocess.run(["/bin/sh", "-c", commit], cwd=bench.workspace, check=True)
    bench.script("A", f"git -C {bench.workspace} checkout -q -b elsewhere")
    bench.answer("A", result_block("A", writes=[write("a.txt", "x")]))
    with pytest.raises(NotReady, match="merges into"):
        drive(bench.open(), plain=True, compat=None, as_json=False)
    report = (bench.state_dir / "report.md").read_text()
    assert "The run has not ended: isolation worktree: this run merges into" in report
    assert "- stopped, " in report
    assert "cut off: A" in report
