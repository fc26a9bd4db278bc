"""What ends a guarded program: its own end, and that of all who use it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli import postgresql_guard
from tests.support.waiting import eventually


@contextmanager
def guarded(
    folder: Path, *command: str, removed: Path | None = None
) -> Iterator[tuple["subprocess.Popen[str]", int, int]]:
    """A guard, the pid of its program, and the lock that this process holds."""
    lifeline = folder / "in-use"
    held = os.open(lifeline, os.O_CREAT | os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_SH)
    order: postgresql_guard.Order = {
        "command": list(command),
        "lifeline": str(lifeline),
        "output": str(folder / "output"),
        "uid": None,
        "gid": None,
        "removed": None if removed is None else str(removed),
    }
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", postgresql_guard.__file__, json.dumps(order)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert guard.stdout is not None
        yield guard, int(guard.stdout.readline()), held
    finally:
        guard.kill()
        guard.communicate()


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has asked for its status doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_ends_when_the_last_lock_on_its_lifeline_goes(tmp_path: Path) -> None:
    kept, removed = tmp_path / "kept", tmp_path / "removed"
    removed.mkdir()
    kept.mkdir()
    with guarded(tmp_path, "sleep", "600", removed=removed) as (guard, pid, held):
        other = os.open(tmp_path / "in-use", os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_SH)
        os.close(held)
        assert alive(pid)
        os.close(other)
        assert guard.wait(60) == -signal.SIGQUIT & 0xFF
        assert not alive(pid)
    assert kept.exists()
    assert not removed.exists()


def test_its_status_is_the_guards_and_its_output_is_kept(tmp_path: Path) -> None:
    command = ("sh", "-c", "echo out; echo error >&2; exit 7")
    with guarded(tmp_path, *command, removed=tmp_path) as (guard, _, _):
        assert guard.wait(60) == 7
    assert (tmp_path / "output").read_text() == "out\nerror\n", "it ended by itself: nothing goes"


def test_the_guard_is_deaf_to_a_terminals_signals_and_its_program_is_not(tmp_path: Path) -> None:
    with guarded(tmp_path, "sleep", "600") as (guard, pid, _):
        guard.send_signal(signal.SIGINT)
        guard.send_signal(signal.SIGTERM)
        guard.send_signal(signal.SIGHUP)
        assert alive(pid)
        os.kill(pid, signal.SIGINT)
        assert guard.wait(60) == -signal.SIGINT & 0xFF


def test_a_program_ends_with_its_guard(tmp_path: Path) -> None:
    with guarded(tmp_path, "sleep", "600") as (guard, pid, _):
        guard.kill()
        eventually(lambda: not alive(pid))
