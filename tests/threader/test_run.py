"""The orchestrator (agent-threader-v2 §5)."""

import asyncio
import re
import subprocess
import time
from pathlib import Path

import pytest

from schemas.manifest import Budget
from schemas.run_state import RunState, RunStatus, TaskStatus
from schemas.state import State
from tests.threader.fakes import adapter_spec
from tests.threader.projects import Bench, events_of, heal_block, is_alive, result_block, write
from tests.waiting import until
from threader.budget import spent_in
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
    assert opened.course.spent == spent_in(state)
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
    with pytest.raises(NotReady, match="worker claude with the output text tells neither"):
        asyncio.run(bench.run())
    assert bench.calls("A") == 0


def test_a_budget_that_nothing_is_told_of_stops_the_run(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "p", [*"ABCDEF"], policy={"budget": {"usd": 5}, "heal_schedule": "off"}
    )
    state = asyncio.run(bench.run())
    assert "cannot be kept: 3 invocations told nothing of money" in (state.abort_reason or "")
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
    assert "refuses its prompt as too large: Error: 429" in (task.escalation_reason or "")
    assert (bench.calls("A"), bench.calls("healer")) == (1, 0)
    assert state.interruptions == []
    assert state.tasks["B"].status is TaskStatus.DONE


def test_a_healers_prompt_that_is_too_large_is_no_outage(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", "echo 'API Error: 400 prompt is too long: 9 tokens > 8'; exit 1")
    state = asyncio.run(bench.run())
    assert state.tasks["A"].status is TaskStatus.FAILED
    assert state.healer_failures[0].note.startswith("the provider refuses its prompt as too large")
    assert state.interruptions == []


def test_the_workers_own_words_are_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], healer=None)
    bench.answer("A", result_block("A", summary="Did it.", evidence={"notes": ["But slowly."]}))
    bench.answer("B", "I would rather not.\n")
    state = asyncio.run(bench.run())
    assert state.tasks["A"].history[0].said == "Did it.\nBut slowly."
    assert {record.said for record in state.tasks["B"].history} == {"I would rather not."}


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
    assert opened.course.spent == spent_in(opened.state)
    assert (opened.state.aside.invocations, opened.state.aside.input_tokens) == (2, 1800)
    (bench.state_dir / "logs" / "@healer.7.log").write_text(USED)
    state = asyncio.run(resume_run(load_project(bench.save()))[0].go())
    assert state.tasks["A"].status is TaskStatus.DONE
    assert (state.aside.invocations, state.aside.input_tokens) == (3, 2700)
    assert spent_in(state).input_tokens == 3600
    state = asyncio.run(resume_run(load_project(bench.save()))[0].go())
    assert spent_in(state).input_tokens == 3600, "nothing is counted twice"


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
