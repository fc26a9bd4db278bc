"""Starting points."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.thread import app
from schemas.run_state import TaskStatus
from threader.errors import ThreaderError
from threader.load import load_project
from threader.probe import probe_all
from threader.scaffold import init, scaffold, skill
from threader.session import start_run


def test_the_example_runs_through_failures_and_heals_to_its_end(tmp_path: Path) -> None:
    files = scaffold(tmp_path / "demo")
    assert "manifest.json" in files
    for name in ("worker.py", "healer.py"):
        script = tmp_path / "demo" / name
        script.write_text(script.read_text().replace("time.sleep(", "float("))
    state = asyncio.run(start_run(load_project(tmp_path / "demo" / "manifest.json")).go())
    assert all(task.status is TaskStatus.DONE for task in state.tasks.values())
    classes = {record.failure_class for task in state.tasks.values() for record in task.history} - {
        None
    }
    assert classes == {"test_error", "write_rejected", "contract_error"}
    assert [item.converging for item in state.healing_rounds] == [True, True]
    tests = subprocess.run(
        [sys.executable, "-m", "unittest", "discover", "-q", "-s", "tests", "-t", "."],
        cwd=tmp_path / "demo" / "repo", capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert tests.returncode == 0, tests.stderr
    assert "skipped" not in tests.stderr


def test_the_example_answers_a_probe(tmp_path: Path) -> None:
    scaffold(tmp_path / "demo")
    found = probe_all(load_project(tmp_path / "demo" / "manifest.json"), 120)
    assert [(item.ok, item.text.split(" ")[0]) for item in found] == [
        (True, "worker:"),
        (True, "healer:"),
    ]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(ThreaderError, match="not empty"):
        scaffold(tmp_path)
    (tmp_path / "manifest.json").write_text("mine")
    with pytest.raises(ThreaderError, match=r"manifest\.json exists"):
        init(tmp_path, "r")
    assert {path.name for path in tmp_path.iterdir()} == {"x", "manifest.json"}


def test_init_writes_a_valid_manifest(tmp_path: Path) -> None:
    init(tmp_path, "my-run")
    assert load_project(tmp_path / "manifest.json").manifest.run_id == "my-run"
    assert json.loads((tmp_path / "verify_profiles.json").read_text())["profiles"]


def test_the_skill_names_commands_that_are_there() -> None:
    named = set(re.findall(r"`cacp thread (\w[\w-]*)", skill()))
    assert named >= {"init", "validate", "run", "resume", "explain"}
    there = {
        info.name or info.callback.__name__ for info in app.registered_commands if info.callback
    }
    assert named <= {name.replace("_", "-") for name in there}


@pytest.mark.parametrize("platform", ["claude", "codex", "cursor", "windsurf"])
def test_wrappers_are_thin_and_point_to_the_skill_and_the_specification(platform: str) -> None:
    """§11, Wrapper Rules."""
    text = skill(platform)
    assert "`SKILL.md`" in text
    assert "AgentThreader v2" in text
    assert len(text.splitlines()) < 20


def test_a_platform_without_a_wrapper_is_refused() -> None:
    with pytest.raises(
        ThreaderError, match="unknown platform emacs; there are claude, codex, cursor, windsurf"
    ):
        skill("emacs")
