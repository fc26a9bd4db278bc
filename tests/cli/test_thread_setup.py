"""`cacp thread` before a run."""

import json
from pathlib import Path

from tests.cli.threader import bench_of, invoke


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
    assert "answered with a valid contract" in json.loads(found.output)[-1]["text"]


def test_the_skill_is_printed_as_it_is_installed() -> None:
    assert invoke("skill").output.startswith("---\nname: agent-threader\n")
    assert (
        "# Agent Threader for Codex"
        in json.loads(invoke("skill", "codex", "--json").output)["text"]
    )
    assert invoke("skill", "emacs").exit_code == 2
