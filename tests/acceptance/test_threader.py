"""The test matrix of agent-threader-v2 §12, one named test each, with real processes and files."""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from schemas.run_state import RunState, RunStatus, TaskStatus, Usage
from tests.support.waiting import PATIENCE, eventually
from tests.threader.fakes import ADAPTERS, adapter_spec
from tests.threader.projects import (
    PYTHON,
    Bench,
    events_of,
    heal_block,
    is_alive,
    result_block,
    write,
)
from threader.errors import DigestMismatch
from threader.load import load_project
from threader.session import resume_run

CACP = "from cli.main import main; main()"
LONG = "x = 1\n" * 60


def run(bench: Bench) -> RunState:
    return asyncio.run(bench.run())


def phases(state: RunState, task_id: str) -> list[str]:
    return [record.phase for record in state.tasks[task_id].history]


def test_valid_worker_json_result(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", writes=[write("a.txt", "hello")]))
    state = run(bench)
    assert (state.run_status, state.tasks["A"].status) == ("COMPLETED", "DONE")
    assert bench.tree() == {"a.txt": "hello"}


def test_missing_worker_fence(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None)
    bench.answer("A", "I did everything, trust me.\n")
    state = run(bench)
    assert state.tasks["A"].last_failure_signature == "contract_error:no_sentinel"
    assert state.tasks["A"].status is not TaskStatus.DONE


def test_invalid_worker_json(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None)
    bench.answer("A", "<<<TASK_RESULT_V2>>>\n{nope\n<<<END_TASK_RESULT_V2>>>\n")
    state = run(bench)
    assert state.tasks["A"].last_failure_signature == "contract_error:invalid_json"
    assert "INVALID_JSON" in state.tasks["A"].history[0].notes[0]


def test_invalid_healer_json(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"))
    bench.answer("healer", "<<<HEAL_DECISION_V2>>>\n{nope\n<<<END_HEAL_DECISION_V2>>>\n")
    state = run(bench)
    assert state.healing_rounds == []
    assert "INVALID_JSON" in state.healer_failures[0].note
    assert state.tasks["A"].status is TaskStatus.FAILED
    assert bench.calls("A") == 2, "retry policy alone decides without a valid decision"


def test_schema_violation_on_either_contract(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="MAYBE"))
    bench.answer("healer", heal_block(scope="galaxy"))
    state = run(bench)
    assert state.tasks["A"].last_failure_signature == "contract_error:schema_violation"
    assert "SCHEMA_VIOLATION: scope" in state.healer_failures[0].note


def test_prompt_echo_contamination_with_multiple_fenced_blocks(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    draft = result_block("A", writes=[write("draft.txt", "draft")])
    bench.answer("A", draft + result_block("A", writes=[write("final.txt", "final")]))
    bench.script("A", 'cat "$CACP_PROMPT_FILE"')
    state = run(bench)
    assert bench.tree() == {"final.txt": "final"}
    assert "the last one counts" in state.tasks["A"].history[0].notes[0]
    echo = Bench(tmp_path / "q", ["A"], healer=None)
    (echo.root / "answers" / "A").unlink()
    echo.script("A", 'cat "$CACP_PROMPT_FILE"')
    assert run(echo).tasks["A"].status is not TaskStatus.DONE, "an echo is no result"


def test_automatic_contract_error_retry_without_heal_budget_consumption(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", "no fence\n", result_block("A"))
    state = run(bench)
    task = state.tasks["A"]
    assert (task.status, task.worker_attempts, task.contract_retries) == ("DONE", 1, 1)
    assert state.healing_rounds == []
    assert bench.calls("healer") == 0
    second = (bench.state_dir / "prompts" / "A.2.md").read_text()
    assert "did not keep to the contract (no sentinel)" in second


def test_successful_verification_after_write(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "tests"}])
    bench.profile("tests", ("test", "grep -q hello a.txt"), ("smoke", "test -f a.txt"))
    bench.answer("A", result_block("A", writes=[write("a.txt", "hello\n")]))
    state = run(bench)
    assert state.tasks["A"].status is TaskStatus.DONE
    assert phases(state, "A") == ["worker", "verify"]
    log = bench.state_dir / (state.tasks["A"].history[0].verify_log_path or "")
    assert "=== smoke: exit code 0" in log.read_text()


def test_failed_verification_with_rollback(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "tests"}], healer=None)
    (bench.workspace / "old.txt").write_text("before\n")
    bench.profile("tests", ("test", "echo 'AssertionError: wrong'; exit 1"))
    writes = [write("old.txt", "after\n", "replace"), write("new/deep.txt", "x")]
    bench.answer("A", result_block("A", writes=writes))
    state = run(bench)
    assert bench.tree() == {"old.txt": "before\n"}
    assert not (bench.workspace / "new").exists()
    assert phases(state, "A")[:3] == ["worker", "verify", "rollback"]
    signature = state.tasks["A"].last_failure_signature
    assert signature == "test_error:test_assertionerror_wrong"


def test_protected_file_rejection(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None, protected=["locked/*"])
    bench.answer("A", result_block("A", writes=[write("ok.txt", "x"), write("LOCKED/a", "x")]))
    state = run(bench)
    assert bench.tree() == {}, "all or nothing"
    assert state.tasks["A"].last_failure_signature == "write_rejected:protected_file"


def test_shrinkage_rejection(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "allow_shrink": ["b.py"]}], healer=None)
    for name in ("a.py", "b.py"):
        (bench.workspace / name).write_text(LONG)
    bench.answer("A", result_block("A", writes=[write("a.py", "x = 1\n", "replace")]))
    bench.answer("B", result_block("B", writes=[write("b.py", "x = 1\n", "replace")]))
    state = run(bench)
    assert state.tasks["A"].last_failure_signature == "write_rejected:shrinkage"
    assert bench.tree() == {"a.py": LONG, "b.py": "x = 1\n"}


def test_concurrent_window_completion_with_atomic_checkpoints(tmp_path: Path) -> None:
    names = [f"T{index}" for index in range(30)]
    bench = Bench(tmp_path / "p", list(names))
    bench.manifest["policy"] = {"concurrency": 8, "heal_schedule": "epoch"}
    for name in names:
        bench.answer(name, result_block(name, writes=[write("all.txt", f"{name}\n", "append")]))
    state = run(bench)
    assert all(task.status is TaskStatus.DONE for task in state.tasks.values())
    lines = bench.tree()["all.txt"].split()
    assert sorted(lines) == sorted(names), "no completion loses another's write"
    on_disk = RunState.model_validate_json((bench.state_dir / "run.json").read_bytes())
    assert on_disk == state


def start(bench: Bench, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [PYTHON, "-c", CACP, "thread", *args, str(bench.save()), "--plain"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_triggered_shutdown_with_resumable_state(tmp_path: Path, number: int) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}])
    bench.script("B", 'sh -c "echo \\$\\$ > started; exec sleep 60"')
    process = start(bench, "run")
    started = bench.workspace / "started"
    # The file is there a moment before what it says.
    eventually(lambda: started.exists() and started.read_text())
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    child = int(started.read_text())
    assert not is_alive(child)
    state = RunState.model_validate_json((bench.state_dir / "run.json").read_bytes())
    assert state.run_status is RunStatus.RUNNING
    assert state.tasks["A"].status is TaskStatus.DONE
    assert (state.tasks["B"].status, state.tasks["B"].worker_attempts) == ("PENDING", 0)


def test_resume_after_interruption(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}])
    bench.script("B", "if [ ! -f started ]; then touch started; sleep 60; fi")
    process = start(bench, "run")
    eventually((bench.workspace / "started").exists)
    process.kill()
    process.communicate(timeout=PATIENCE)
    opened, changes = resume_run(load_project(bench.save()))
    state = asyncio.run(opened.go())
    assert changes.lines() == []
    assert all(task.status is TaskStatus.DONE for task in state.tasks.values())
    assert (bench.calls("A"), bench.calls("B")) == (1, 2), "DONE tasks are skipped"


def test_manifest_digest_mismatch(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    run(bench)
    bench.manifest["tasks"][0]["priority"] = 5
    with pytest.raises(DigestMismatch, match="--reconcile"):
        resume_run(load_project(bench.save()))
    opened, _ = resume_run(load_project(bench.save()), reconciling=True)
    asyncio.run(opened.go())
    assert bench.calls("A") == 1, "a changed priority invalidates no attempt"


def sizes(state: RunState) -> list[int]:
    return [item.size for item in state.windows]


def test_pbh_growth_on_stable_windows(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(11)])
    state = run(bench)
    assert sizes(state) == [1, 2, 3, 5]


def test_pbh_retry_on_moderate_failures(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(11)])
    bench.answer("T7", result_block("T7", status="FAILED"), result_block("T7"))
    bench.answer("healer", heal_block())
    state = run(bench)
    assert sizes(state) == [1, 2, 3, 5, 1]
    assert state.windows[3].verdict == "heal and retry"
    assert state.windows[3].failure_rate == 0.2
    assert state.tasks["T7"].status is TaskStatus.DONE


def test_pbh_shrink_on_instability(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(11)])
    for name in ("T7", "T8"):
        bench.answer(name, result_block(name, status="FAILED"), result_block(name))
    bench.answer("healer", heal_block())
    state = run(bench)
    assert sizes(state) == [1, 2, 3, 5, 1, 1]
    assert state.windows[3].verdict == "shrink and heal"
    assert state.windows[3].next_batch_size == 3
    assert all(task.status is TaskStatus.DONE for task in state.tasks.values())


def test_pbh_abort_with_recorded_non_convergence_reason(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B", "C"])
    for name in ("A", "B", "C"):
        bench.answer(name, result_block(name, status="FAILED", summary="missing import"))
    bench.answer("healer", heal_block())
    opened = bench.open()
    events = events_of(opened)
    state = asyncio.run(opened.go())
    assert state.run_status is RunStatus.ABORTED
    assert "no reduction in failing task count" in (state.abort_reason or "")
    assert "prompt_gap:missing_import" in (state.abort_reason or "")
    assert str(state.abort_reason) in events[-1].text, "the summary gives the same reason"


def test_repeated_signature_escalation(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    bench.answer("A", result_block("A", status="FAILED", summary="the same"))
    bench.answer("healer", heal_block())
    state = run(bench)
    assert state.tasks["A"].status is TaskStatus.ESCALATED
    assert "came back 2 times" in (state.tasks["A"].escalation_reason or "")
    assert (bench.calls("A"), bench.calls("healer")) == (3, 2)
    assert state.tasks["B"].status is TaskStatus.DONE


@pytest.mark.parametrize(("adapter", "output"), ADAPTERS)
def test_adapter_parity(tmp_path: Path, adapter: str, output: str) -> None:
    """The same fake model behind each CLI, in each mode, gives the same end state."""
    bench = Bench(tmp_path / "p", ["A", "B", "C"])
    bench.manifest["worker"] = adapter_spec(adapter, output, bench.root)
    bench.manifest["healer"] = adapter_spec(adapter, output, bench.root)
    bench.answer("A", result_block("A", writes=[write("a.txt", 'say "hi"\nline <two>\n')]))
    bench.answer("B", result_block("B", status="FAILED", summary="unclear"), result_block("B"))
    bench.answer("C", "no fence\n", result_block("C"))
    hint = {"target": "contract_hint", "operation": "append", "content": "be exact"}
    bench.answer("healer", heal_block(patches=[hint]))
    state = run(bench)
    seen = {
        key: (task.status, task.runs, task.healer_attempts, task.contract_retries)
        for key, task in state.tasks.items()
    }
    assert seen == {"A": ("DONE", 1, 0, 0), "B": ("DONE", 2, 1, 0), "C": ("DONE", 2, 0, 1)}
    assert bench.tree() == {"a.txt": 'say "hi"\nline <two>\n'}
    signatures = [record.failure_signature for record in state.tasks["B"].history]
    assert signatures == ["prompt_gap:unclear", "prompt_gap:unclear", None]
    assert json.loads((bench.state_dir / "state.json").read_bytes())["run_status"] == "COMPLETED"
    tells = adapter == "acp" or (adapter in ("claude", "opencode") and output != "text")
    used = Usage(input_tokens=800, cached_tokens=700, output_tokens=200, cost_usd=0.01)
    workers = [
        record
        for task in state.tasks.values()
        for record in task.history
        if record.phase == "worker"
    ]
    assert [record.usage for record in workers] == [used if tells else None] * 5
    assert state.healing_rounds[0].usage == (used if tells else None)
