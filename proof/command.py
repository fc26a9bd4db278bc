"""Runs a command, passes on what it prints, and says how it ended."""

import hashlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from proof.git_tree import clean_environment

NOT_RUNNABLE, NOT_FOUND = 126, 127
"""Exit statuses of shells for a program that can't be run, and for one that isn't there."""
MISSING = frozenset({NOT_RUNNABLE, NOT_FOUND})
SIGNALLED = 128
"""Shells add the number of the signal that ended a command."""
DRAIN_SECONDS = 2.0
"""How long output is awaited of what a command has left running."""
CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class EndedCommand:
    """How a command ended. `exit_code` is as shells give it; `duration` in milliseconds; the digest
    is SHA-256, hex, of all that it printed, errors included."""

    exit_code: int
    output_digest: str
    started_at: str
    duration: int
    problem: str = ""
    """Why it could not be started, or was not awaited."""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def is_missing(self) -> bool:
        """Whether it could not be run here."""
        return self.exit_code in MISSING

    @property
    def was_ended(self) -> bool:
        """Whether a signal ended it, rather than what it found."""
        return self.exit_code > SIGNALLED


def run_command(
    command: Sequence[str],
    folder: Path,
    printed: Callable[[bytes], None],
    environment: Mapping[str, str] | None = None,
    time_limit: float | None = None,
) -> EndedCommand:
    """Run a command in a folder, without a shell; `printed` is given each piece of its output.
    Without an `environment` it has this process's. With a `time_limit`, in seconds, it is ended
    after it, and whatever it has started ends with it; so it does when this is interrupted."""
    started_at = datetime.now(UTC).isoformat(timespec="microseconds")
    began = time.monotonic()
    digest = hashlib.sha256()

    def ended(exit_code: int, problem: str = "") -> EndedCommand:
        duration = round((time.monotonic() - began) * 1_000)
        return EndedCommand(exit_code, digest.hexdigest(), started_at, duration, problem)

    try:
        running = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**(environment or clean_environment()), "PWD": str(folder)},
            start_new_session=True,
        )
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        return ended(code, f"{command[0]}: {error.strerror}")
    assert running.stdout is not None
    pump = threading.Thread(target=_pass_on, args=(running.stdout, digest.update, printed))
    pump.daemon = True
    pump.start()
    problem = ""
    try:
        code = running.wait(time_limit)
    except subprocess.TimeoutExpired:
        problem = f"it did not end within {time_limit:g} s"
        code = -signal.SIGKILL
    except BaseException:
        _end(running)
        raise
    finally:
        if time_limit is not None:
            _end(running)
    # What it has left in the background may keep its output open.
    pump.join(DRAIN_SECONDS)
    return ended(code if code >= 0 else SIGNALLED - code, problem)


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a command with whatever it has started."""
    # macOS answers EPERM when only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _pass_on(
    output: IO[bytes], count: Callable[[bytes], None], printed: Callable[[bytes], None]
) -> None:
    with output:
        while piece := os.read(output.fileno(), CHUNK):
            count(piece)
            printed(piece)
