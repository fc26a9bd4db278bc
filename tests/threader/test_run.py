"""The orchestrator (agent-threader-v2 §5)."""

import asyncio
import re
import subprocess
import time
from pathlib import Path

import pytest

from schemas.run_state import RunState, TaskStatus
from schemas.state import State
from tests.threader.projects import Bench, events_of, heal_block, is_alive, result_block, write
from tests.waiting import until
from threader.drive import drive
from threader.errors import NotReady, RunLocked
from threader.files import sole_user
from threader.load import load_project
from threader.run import Event, Interrupted
from threader.session import load_state, resume_run
from threader.signatures import one_line


def test_an_empty_manifest_completes(tmp_path: Path) -> None:
    assert asyncio.run(Bench(tmp_path / "p", []).run()).run_status == "COMPLETED"


def test_a_manifest_without_a_worker_is_not_ready(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], worker=None)
    with pytest.raises(NotReady, match="names no worker"):
        asyncio.run(bench.run())


def test_a_cli_that_is_not_there_is_found_out_before_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer={"adapter": "claude", "command": ["./claude"]})
    with pytest.raises(NotReady, match=r"no executable \./claude"):
        asyncio.run(bench.run())
    assert bench.calls("A") == 0


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


def test_concurrency_is_bounded(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(8)])
    bench.manifest["policy"] = {"concurrency": 3, "heal_schedule": "epoch"}
    for index in range(8):
        bench.script(f"T{index}", "touch run-$$; ls run-* | wc -l >> seen; sleep 0.1; rm run-$$")
    asyncio.run(bench.run())
    seen = [int(line) for line in (bench.workspace / "seen").read_text().split()]
    assert max(seen) in (2, 3)


def test_healing_never_starts_midway(tmp_path: Path) -> None:
    """§5: a window is complete only when every task of it has settled."""
    bench = Bench(tmp_path / "p", ["A", "B", "C"])
    bench.manifest["policy"] = {"concurrency": 3, "heal_schedule": "batch", "batch_size": 3}
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.script("C", "sleep 0.4")
    bench.answer("healer", heal_block())
    opened = bench.open()
    events = events_of(opened)
    asyncio.run(opened.go())
    order = [f"{event.kind} {event.task_id or ''}".strip() for event in events]
    assert order.index("settled C") < order.index("healing")


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


def test_every_attempt_is_on_disk_before_the_next_window(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    opened = bench.open()
    seen: list[bool] = []

    def check(event: Event, state: RunState) -> None:
        if event.kind == "settled":
            path = bench.state_dir / "tasks" / f"{event.task_id}.json"
            seen.append('"status":"DONE"' in path.read_text())

    opened.listeners.append(check)
    asyncio.run(opened.go())
    assert seen == [True, True]


def test_a_stop_in_the_middle_of_verification_takes_the_writes_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "slow"}])
    bench.profile("slow", ("test", "touch ../verifying; sleep 60"))
    bench.answer("A", result_block("A", writes=[write("a.txt", "x")]))
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until((bench.root / "verifying").exists)
        assert bench.tree() == {"a.txt": "x"}
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert bench.tree() == {}
    assert opened.state.tasks["A"].status is TaskStatus.PENDING
    assert opened.state.tasks["A"].worker_attempts == 0


def test_a_stop_while_the_healer_thinks(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", 'echo $$ > "$here/healing"; sleep 60')
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until((bench.root / "healing").exists)
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert not is_alive(int((bench.root / "healing").read_text()))
    on_disk = RunState.model_validate_json((bench.state_dir / "run.json").read_bytes())
    assert on_disk.window is not None
    assert on_disk.window.needs_heal
    assert on_disk.healing_rounds == []


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


def test_what_a_healer_says_is_one_line_that_steers_no_terminal(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.answer("healer", heal_block(root_cause="a\n\x1b]0;title\x07b\x9bc"))
    opened = bench.open()
    events = events_of(opened)
    asyncio.run(opened.go())
    assert [event.text for event in events if event.kind == "healed"] == ["round 1: RETRY: a bc"]


def test_the_published_state_moves_on_while_a_window_runs(tmp_path: Path) -> None:
    """And it holds what is published, whatever happened: heals, outages, invalid answers."""
    bench = Bench(tmp_path / "p", ["A", "B"], policy={"heal_schedule": "epoch", "concurrency": 2})
    seen = 'grep -q \'"A":{"status":"DONE"\' $here/.threader/run-1/state.json'
    bench.script("B", f"until {seen}; do sleep 0.05; done")
    bench.answer("B", result_block("B", status="FAILED"), result_block("B"))
    bench.answer("healer", "nonsense", heal_block())
    state = asyncio.run(bench.run())
    assert state.tasks["B"].status is TaskStatus.DONE, "it saw A done while it ran"
    shown = State.model_validate_json((bench.state_dir / "state.json").read_bytes())
    assert [item.decision for item in shown.healing_rounds] == ["RETRY"]


def test_the_workers_own_words_are_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], healer=None)
    bench.answer("A", result_block("A", summary="Did it.", evidence={"notes": ["But slowly."]}))
    bench.answer("B", "I would rather not.\n")
    state = asyncio.run(bench.run())
    assert state.tasks["A"].history[0].said == "Did it.\nBut slowly."
    assert {record.said for record in state.tasks["B"].history} == {"I would rather not."}


def test_a_runner_leaves_a_sign_of_life(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    opened = bench.open()
    bench.script("A", f"until [ -e {bench.root}/seen ]; do sleep 0.02; done")

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until(lambda: bench.calls("A"))
        first = opened.store.last_seen()
        await until(lambda: (opened.store.last_seen() or "") > (first or ""))
        (bench.root / "seen").touch()
        await running

    asyncio.run(main())


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
    assert "cut short: A" in report
