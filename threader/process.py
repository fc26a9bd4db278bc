"""Runs child processes with a log and limits, and leaves none behind (agent-threader-v2 §5)."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from threader.outcome import Ending

MARKER = "CACP_THREAD_RUN"
"""An environment variable that marks every child, even after its parent was killed."""

GRACE_SEC = 2.0
LOOK_EVERY_SEC = 0.1


@dataclass(frozen=True)
class Exit:
    """How a process ended. `exit_code` is negative for a signal, None when never started."""

    ending: Ending
    exit_code: int | None
    duration_sec: float


def _signal_group(pid: int, number: signal.Signals) -> bool:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def stop_group(process: asyncio.subprocess.Process) -> None:
    """End a process and its group: SIGTERM, a grace period, SIGKILL."""
    if process.returncode is None and _signal_group(process.pid, signal.SIGTERM):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SEC):
                await process.wait()
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


async def limited(
    work: Coroutine[object, object, object], log: int, timeout_sec: float, max_log_bytes: int
) -> Ending:
    """Run `work` until it ends, its time is up, or the log `log` (a descriptor) is too large.

    On a limit it is cancelled. Exceptions of `work` are raised here.
    """
    deadline = time.monotonic() + timeout_sec
    task = asyncio.ensure_future(work)
    try:
        while True:
            left = deadline - time.monotonic()
            done, _ = await asyncio.wait({task}, timeout=min(max(left, 0), LOOK_EVERY_SEC))
            if done:
                task.result()
                return Ending.EXITED
            if os.fstat(log).st_size > max_log_bytes:
                return Ending.LOG_TOO_LARGE
            if left <= 0:
                return Ending.TIMED_OUT
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log_path: Path,
    timeout_sec: float,
    stdin_path: Path | None = None,
    max_log_bytes: int = 1 << 40,
) -> Exit:
    """Run `argv` in a process group of its own; its output is appended to `log_path`.

    The group is killed when the leader ends, on a limit, and when this task is cancelled.
    """
    began = time.monotonic()
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    stdin = os.open(stdin_path or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, cwd=cwd, env=dict(env), stdin=stdin, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "the command line has a zero byte"
            os.write(log, f"cannot start {argv[0]}: {reason}\n".encode())
            return Exit(Ending.NOT_STARTED, None, time.monotonic() - began)
        try:
            ending = await limited(process.wait(), log, timeout_sec, max_log_bytes)
        finally:
            await asyncio.shield(stop_group(process))
        code = process.returncode if ending is Ending.EXITED else None
        return Exit(ending, code, time.monotonic() - began)
    finally:
        os.close(log)
        os.close(stdin)


def kill_leftovers(marker: str) -> int:
    """Kill every process with `marker` in its environment, and wait until all have ended.

    Returns how many there were. It reads /proc and finds nothing on systems without it, where only
    process groups are killed.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + GRACE_SEC
    while (pids := _marked(marker)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed |= pids
        time.sleep(0.01)
    return len(killed)


def _marked(marker: str) -> set[int]:
    wanted = f"{MARKER}={marker}".encode()
    pids = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                pids.add(int(entry.name))
    return pids - {os.getpid()}
