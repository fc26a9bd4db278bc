"""Short answers about a run."""

import asyncio
import io
import threading
from pathlib import Path

import pytest

from schemas.run_state import RunStatus, TaskStatus
from schemas.v2 import FailureClass
from tests.threader.builders import NOW
from tests.threader.projects import Bench, heal_block, result_block
from threader.errors import NoSuchRun, ThreaderError
from threader.initial_state import new_state
from threader.interruptions import paused
from threader.load import load_project
from threader.overview import explanations, find_logs, follow_logs, overview, overview_lines
from threader.parsing import ParserErrorCode


def test_every_word_is_explained() -> None:
    words = {*ParserErrorCode, *FailureClass, *TaskStatus, *RunStatus}
    assert {str(word) for word in words} <= set(explanations())


def test_overview_and_logs(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A.b", "C"])
    bench.answer("C", result_block("C", status="BLOCKED", summary="no key"))
    bench.answer("A.b", result_block("A.b", status="FAILED"), result_block("A.b"))
    bench.answer("healer", heal_block())
    state = asyncio.run(bench.run())
    facts = overview(load_project(bench.save()), state)
    assert facts["tasks"] == {"DONE": 1, "BLOCKED": 1}
    assert facts["troubled"]["C"]["signature"] == "blocked_external:no_key"
    lines = overview_lines(facts)
    assert "  C BLOCKED: blocked_external:no_key" in lines
    assert "    its worker said: no key" in lines
    assert f"    $ cacp thread resume {bench.root}/manifest.json --retry C" in lines

    def names(task: str | None, phase: str | None) -> list[str]:
        return [path.name for path in find_logs(bench.state_dir, task, phase)]

    assert names("A.b", "worker") == ["A.b.worker.1.log", "A.b.worker.2.log"]
    assert names(None, "healer") == ["@healer.1.log"]
    assert len(names(None, None)) == 4
    with pytest.raises(NoSuchRun):
        find_logs(tmp_path, None, None)
    with pytest.raises(ThreaderError, match="werker should be one of"):
        find_logs(bench.state_dir, None, "werker")


def test_follow_prints_what_is_added(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "A.worker.1.log"
    log.write_text("old\n")

    def add() -> None:
        with log.open("a") as file:
            file.write("new\n")

    timer = threading.Timer(0.3, add)
    timer.start()
    out = io.StringIO()
    follow_logs(tmp_path, None, None, out, rounds=5)
    timer.join()
    assert out.getvalue() == "==> A.worker.1.log <==\nnew\n"


def test_running_tasks_and_a_dead_runner_are_shown(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    project = load_project(bench.save())
    state = new_state(project.manifest, NOW)
    state.tasks["B"].status = TaskStatus.RUNNING
    paused(state, NOW, "rate limited")
    alive = overview_lines(overview(project, state, None, "4711"))
    assert "running: B" in alive
    assert f"paused since {NOW}: rate limited" in alive
    dead = overview_lines(overview(project, state))
    assert any("no process runs it" in line for line in dead)
    assert not any("paused" in line or "running: " in line for line in dead)
