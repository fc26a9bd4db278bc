"""Where tests keep their files: in memory, where there is room, for most of their time would go by
in waiting for a disk to sync. What a node makes of its syncs is for `tests/faults` to say, on disks
that lose power; `make soak` runs on the disk of this machine."""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 4_000_000_000
"""Bytes: more than all tests keep, and what `cacp doctor` takes for enough beside it."""


def take(memory: Path = MEMORY, room: int = ROOM) -> None:
    """Make `memory` the folder of temporary files, of this process and those that it starts: unless
    the environment names one, or `memory` has less than `room` or runs no scripts."""
    if "TMPDIR" not in os.environ and _fits(memory, room):
        os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


def _fits(memory: Path, room: int) -> bool:
    try:
        found = os.statvfs(memory)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    return free >= room and not found.f_flag & os.ST_NOEXEC and os.access(memory, os.W_OK)
