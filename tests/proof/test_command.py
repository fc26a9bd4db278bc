"""How a command is run: real programs."""

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proof.command import EndedCommand, run_command
from schemas.base import stamp_of
from tests.cli.run import ROOT
from tests.support.waiting import eventually, is_running


def ran(folder: Path, script: str) -> tuple[EndedCommand, bytes]:
    pieces: list[bytes] = []
    run = run_command([sys.executable, "-c", script], folder, pieces.append)
    return run, b"".join(pieces)


def test_what_it_prints_is_passed_on_and_hashed(tmp_path: Path) -> None:
    script = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    run, printed = ran(tmp_path, script)
    assert (run.exit_code, run.passed, printed) == (0, True, b"out\nerr\n")
    assert run.output_digest == hashlib.sha256(printed).hexdigest()
    assert stamp_of(run.started_at) > 0
    assert run.duration >= 0


def test_it_runs_in_its_folder_and_reads_nothing(tmp_path: Path) -> None:
    script = "import os, sys; print(os.getcwd(), os.environ['PWD'], repr(sys.stdin.read()))"
    _, printed = ran(tmp_path, script)
    assert printed.decode().split() == [str(tmp_path), str(tmp_path), "''"]


@pytest.mark.parametrize("code", [1, 5, 100])
def test_its_exit_status_is_kept(tmp_path: Path, code: int) -> None:
    run, _ = ran(tmp_path, f"raise SystemExit({code})")
    assert (run.exit_code, run.passed, run.is_missing, run.was_ended) == (code, False, False, False)


def test_a_signal_is_told_as_shells_do(tmp_path: Path) -> None:
    run, _ = ran(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert (run.exit_code, run.was_ended, run.passed) == (137, True, False)


def test_a_program_that_is_not_there_or_can_not_be_run(tmp_path: Path) -> None:
    missing = run_command([str(tmp_path / "nothing")], tmp_path, lambda piece: None)
    assert (missing.exit_code, missing.is_missing) == (127, True)
    assert "No such file" in missing.problem
    plain = tmp_path / "plain"
    plain.write_text("no program")
    refused = run_command([str(plain)], tmp_path, lambda piece: None)
    assert (refused.exit_code, refused.is_missing) == (126, True)


def test_a_shell_says_so_in_its_status(tmp_path: Path) -> None:
    run = run_command(["sh", "-c", "no-such-program-here"], tmp_path, lambda piece: None)
    assert (run.exit_code, run.is_missing, run.problem) == (127, True, "")


def test_what_it_leaves_running_is_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.command.DRAIN_SECONDS", 0.05)
    note = tmp_path / "pid"
    script = (
        "import pathlib, subprocess; child = subprocess.Popen(['sleep', '600']); "
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid))"
    )
    run, _ = ran(tmp_path, script)
    assert run.passed
    child = int(note.read_text())
    assert is_running(child)
    os.kill(child, signal.SIGKILL)
    eventually(lambda: not any(thread.daemon for thread in pumps()))


def pumps() -> list[threading.Thread]:
    """The threads that still pass output on."""
    return [each for each in threading.enumerate() if "_pass_on" in each.name]


def test_an_interruption_ends_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = (
        "import os, pathlib, time; "
        f"pathlib.Path({str(note)!r}).write_text(str(os.getpid())); time.sleep(600)"
    )
    shell = f"{shlex.join([sys.executable, '-c', script])}; true"
    runner = (
        "import pathlib, sys; from proof.command import run_command; "
        f"run_command(['sh', '-c', {shell!r}], pathlib.Path('.'), print)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", runner], cwd=ROOT, stderr=subprocess.DEVNULL
    ) as running:
        eventually(lambda: note.exists() and note.read_text() != "")
        running.send_signal(signal.SIGINT)
        assert running.wait() != 0
    eventually(lambda: not is_running(int(note.read_text())))


def test_a_time_limit_ends_it_and_all_that_it_has_started(tmp_path: Path) -> None:
    """Even what ignores the usual signals."""
    script = "trap '' TERM; sleep 600 & echo $$ $!; wait"
    pieces: list[bytes] = []
    run = run_command(["sh", "-c", script], tmp_path, pieces.append, time_limit=3.0)
    assert run.problem == "it did not end within 3 s"
    assert (run.exit_code, run.passed) == (137, False)
    for pid in b"".join(pieces).split():
        eventually(lambda pid=pid: not is_running(int(pid)))  # type: ignore[misc]


def test_within_its_time_it_is_as_any_command(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "print('out'); raise SystemExit(3)"]
    run = run_command(words, tmp_path, lambda piece: None, time_limit=600)
    assert (run.exit_code, run.problem) == (3, "")
