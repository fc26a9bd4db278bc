"""`cacp thread`, as a user types it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.threader import bench_of, invoke
from tests.threader.projects import Bench, result_block


def test_run_status_logs_report(tmp_path: Path) -> None:
    path = bench_of(tmp_path).save()
    ran = invoke("run", path)
    assert ran.exit_code == 0, ran.output
    assert "COMPLETED: 2 DONE" in ran.output
    assert "run-1: COMPLETED (2 DONE)" in invoke("status", path).output
    assert json.loads(invoke("status", path, "--json").output)["tasks"] == {"DONE": 2}
    assert "Z is not a task" in invoke("logs", path, "--task", "Z").output
    assert "==> A.worker.1.log <==" in invoke("logs", path, "--task", "A").output
    assert json.loads(invoke("logs", path, "--phase", "worker", "--json").output) == [
        "logs/A.worker.1.log",
        "logs/B.worker.1.log",
    ]
    made = json.loads(invoke("report", path, "--json").output)
    assert Path(made["html"]).exists()
    assert "report.md" in invoke("report", path).output


def test_resume_needs_a_choice_when_the_manifest_changed(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    invoke("run", bench.save())
    (bench.root / "prompts" / "new.md").write_text("New.")
    bench.manifest["tasks"][0]["prompt_ref"] = "prompts/new.md"
    refused = invoke("resume", bench.save())
    assert refused.exit_code == 2
    assert "changed: A; dependents: B" in refused.output
    done = invoke("resume", bench.save(), "--reconcile")
    assert done.exit_code == 0, done.output
    assert (bench.calls("A"), bench.calls("B")) == (2, 2)
    assert invoke("resume", bench.save(), "--retry", "B", "--json").exit_code == 0
    assert (bench.calls("A"), bench.calls("B")) == (2, 3)


def test_a_budget_is_given_to_run_and_resume(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    used = '{"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 100}}\n'
    for name in "AB":
        bench.answer(name, used + result_block(name))
    path = bench.save()
    stopped = invoke("run", path, "--budget-tokens", "1000")
    assert stopped.exit_code == 1
    assert "ABORTED: 1 DONE, 1 PENDING: the budget of 1 k tokens is used up" in stopped.output
    status = invoke("status", path)
    assert (
        "used: 1 k tokens (900 in, 100 out), cost not reported; budget 1 k tokens" in status.output
    )
    (way_on,) = (line for line in status.output.splitlines() if "--budget-tokens" in line)
    done = invoke(*shlex.split(way_on.strip().removeprefix("$ cacp thread ")))
    assert done.exit_code == 0
    assert "COMPLETED: 2 DONE" in done.output
    assert invoke("run", path, "--fresh", "--budget-usd", "0").exit_code == 2


def test_a_copied_command_reads_the_formats_that_the_run_did(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "my tasks", ["A"], healer=None)
    bench.answer("A", "STATUS:needs_decision\nQUESTION:which?\n", "STATUS:ok\n")
    path = bench.save()
    assert invoke("run", path, "--compat", "wire").exit_code == 1
    status = invoke("status", path).output
    (way_on,) = (line for line in status.splitlines() if "--retry A" in line)
    done = invoke(*shlex.split(way_on.strip().removeprefix("$ cacp thread ")))
    assert (done.exit_code, bench.calls("A")) == (0, 2), done.output
    assert "COMPLETED: 1 DONE" in done.output


def test_help_imports_little() -> None:
    """No command's imports are paid for by --help."""
    code = "import sys, cli.thread; print([m for m in sys.modules if m.startswith('threader')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["run", "resume", "validate", "status", "logs", "report"])
def test_every_command_has_help_and_json(command: str) -> None:
    assert "--json" in invoke(command, "--help").output


def test_retry_failed_stands_alone_or_with_a_glob(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None)
    bench.answer("A", result_block("A", status="BLOCKED"))
    path = bench.save()
    assert invoke("run", path).exit_code == 1
    for number, args in enumerate((["--retry-failed"], ["--retry-failed", "A*", "--json"]), 2):
        assert invoke("resume", path, *args).exit_code == 1
        assert bench.calls("A") == number
    assert "Z matches no task" in invoke("resume", path, "--retry-failed=Z").output
