"""`cacp thread`, as a user types it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.thread import app
from tests.threader.projects import Bench, heal_block, result_block


def invoke(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def bench_of(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}])


def test_run_status_logs_report(tmp_path: Path) -> None:
    path = bench_of(tmp_path).save()
    ran = invoke("run", path)
    assert ran.exit_code == 0, ran.output
    assert "COMPLETED: 2 DONE" in ran.output
    assert "run-1: COMPLETED (2 DONE)" in invoke("status", path).output
    assert json.loads(invoke("status", path, "--json").output)["tasks"] == {"DONE": 2}
    assert "Z is no task" in invoke("logs", path, "--task", "Z").output
    assert "==> A.worker.1.log <==" in invoke("logs", path, "--task", "A").output
    assert json.loads(invoke("logs", path, "--phase", "worker", "--json").output) == [
        "logs/A.worker.1.log",
        "logs/B.worker.1.log",
    ]
    made = json.loads(invoke("report", path, "--json").output)
    assert Path(made["html"]).exists()
    assert "report.md" in invoke("report", path).output


def test_mistakes_have_code_2_and_no_traceback(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    path = bench.save()
    for verb, target in (("status", path), ("resume", path), ("run", path.with_name("none"))):
        result = invoke(verb, target)
        assert result.exit_code == 2
        assert "cacp thread: " in result.output
        assert "Traceback" not in result.output
    assert invoke("run", path).exit_code == 0
    again = invoke("run", path, "--json")
    assert again.exit_code == 2
    assert "--fresh" in json.loads(again.output)["problems"][0]
    assert invoke("run", path, "--fresh").exit_code == 0


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


def test_validate_shows_the_order_or_all_problems(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    told = invoke("validate", bench.save())
    assert "    1  A\n    2  B  after A" in told.output
    assert json.loads(invoke("validate", bench.save(), "--json").output)["order"] == ["A", "B"]
    bench.manifest["tasks"][0]["depends_on"] = ["B"]
    bench.manifest["tasks"][1]["verify_profile"] = "nope"
    wrong = invoke("validate", bench.save())
    assert wrong.exit_code == 2
    assert "A -> B -> A" in wrong.output
    assert "nope is not in" in wrong.output


def test_parse_commands(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(result_block("A") * 2 + heal_block())
    parsed = json.loads(invoke("parse-result", log, "--task", "A", "--json").output)
    assert parsed["ok"]
    assert "the last one counts" in parsed["warnings"][0]
    assert '"task_id": "A"' in invoke("parse-result", log, "--task", "A").output
    wrong = invoke("parse-result", log, "--task", "B")
    assert wrong.exit_code == 1
    assert "SCHEMA_VIOLATION" in wrong.output
    assert json.loads(invoke("parse-heal", log, "--json").output)["value"]["decision"] == "RETRY"
    log.write_text("nothing")
    failed = json.loads(invoke("parse-heal", log, "--json").output)
    assert failed["code"] == "NO_SENTINEL"


def test_explain() -> None:
    assert "fenced block" in invoke("explain", "no_sentinel").output
    assert "ESCALATED" in json.loads(invoke("explain", "--json").output)
    assert invoke("explain", "nonsense").exit_code == 2
    assert "none of NO_SENTINEL" in invoke("explain", "nonsense", "--json").stdout


def test_scaffold_init_doctor(tmp_path: Path) -> None:
    made = invoke("scaffold", tmp_path / "demo")
    assert "now: cacp thread run" in made.output
    assert invoke("scaffold", tmp_path / "demo").exit_code == 2
    assert invoke("doctor", tmp_path / "demo" / "manifest.json").exit_code == 0
    assert json.loads(invoke("init", tmp_path / "own", "--json").output)["ok"]
    findings = json.loads(invoke("doctor", tmp_path / "own" / "manifest.json", "--json").output)
    assert any("claude" in finding["text"] for finding in findings)


def test_doctor_probes_on_demand_only(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    bench.manifest["healer"] = None
    bench.answer("probe", "Hello!\n")
    assert invoke("doctor", bench.save()).exit_code == 0
    assert bench.calls("probe") == 0
    told = invoke("doctor", bench.save(), "--probe")
    assert told.exit_code == 1
    assert "BAD  worker: command: NO_SENTINEL: " in told.output
    bench.answer("probe", "STATUS:ok\n")
    found = invoke("doctor", bench.save(), "--probe", "--compat", "wire", "--json")
    assert found.exit_code == 0
    assert "answered by its contract" in json.loads(found.output)[-1]["text"]


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
    assert "used: 1 k tokens (900 in, 100 out), cost not told; budget 1 k tokens" in status.output
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


def test_the_skill_is_printed_as_it_is_installed() -> None:
    assert invoke("skill").output.startswith("---\nname: agent-threader\n")
    assert (
        "# Agent Threader for Codex"
        in json.loads(invoke("skill", "codex", "--json").output)["text"]
    )
    assert invoke("skill", "emacs").exit_code == 2


def test_retry_failed_stands_alone_or_with_a_glob(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None)
    bench.answer("A", result_block("A", status="BLOCKED"))
    path = bench.save()
    assert invoke("run", path).exit_code == 1
    for number, args in enumerate((["--retry-failed"], ["--retry-failed", "A*", "--json"]), 2):
        assert invoke("resume", path, *args).exit_code == 1
        assert bench.calls("A") == number
    assert "Z matches no task" in invoke("resume", path, "--retry-failed=Z").output
