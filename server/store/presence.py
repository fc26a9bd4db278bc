"""Are the files that a connection has open still those at their paths?

SQLite goes on writing to files that were moved away or unlinked under it: what it acknowledges
then, no later start finds.
"""

from pathlib import Path
from typing import NamedTuple


class Lost(NamedTuple):
    """A file that is not at its path any more, or another one in its place."""

    what: str
    path: Path


class Presence:
    """The identities of a database's files, as they were when it was opened."""

    def __init__(self, path: Path) -> None:
        files = {
            "database": path,
            "log": path.with_name(f"{path.name}-wal"),
            "index of the log": path.with_name(f"{path.name}-shm"),
        }
        self._files = [(what, one, _identity(one)) for what, one in files.items()]

    def lost(self) -> Lost | None:
        """The first file that is not where it was; None while all are."""
        for what, path, identity in self._files:
            if _identity(path) != identity:
                return Lost(what, path)
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
