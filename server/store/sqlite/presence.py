"""Detects that the files of an open database are no longer at their paths.

SQLite keeps writing to files that were moved or unlinked, and no later start finds what it
acknowledges then.
"""

from pathlib import Path
from typing import NamedTuple


class LostFile(NamedTuple):
    """A file that is no longer at its path, or was replaced there."""

    what: str
    path: Path


class Presence:
    """The identities of a database's files at the time when it was opened."""

    def __init__(self, path: Path) -> None:
        files = {
            "database": path,
            "log": path.with_name(f"{path.name}-wal"),
            "index of the log": path.with_name(f"{path.name}-shm"),
        }
        self._files = [(what, file, _identity(file)) for what, file in files.items()]

    def lost(self) -> LostFile | None:
        """The first file that is missing or replaced; None while all are in place."""
        for what, path, identity in self._files:
            if _identity(path) != identity:
                return LostFile(what, path)
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
