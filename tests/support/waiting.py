"""Waiting for what another process, thread or task does."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0
"""Seconds: how long anything may take on a slow or busy machine. Only what fails waits so long."""


def eventually(holds: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Return once `holds` is true; AssertionError when it isn't within `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.005
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


async def until(holds: Callable[[], object]) -> None:
    """The same for what another task does."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
