"""Changes to an agent's files: computed first, so that they can be shown, then applied."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

AGENT_FOLDERS = frozenset({".claude", ".codex", ".gemini", ".opencode", "plugins", ".cursor"})
"""Folders that are removed with the last file in them."""


class FileEdit(NamedTuple):
    """A file's text `before` and `after`; None when there is no file."""

    path: Path
    before: str | None
    after: str | None

    @property
    def summary(self) -> str:
        """What the change does, in a line."""
        done = "make" if self.before is None else "remove" if self.after is None else "change"
        return f"{done} {self.path}"


def edit_of(path: Path, edit: Callable[[str | None], str | None]) -> list[FileEdit]:
    """The change of a file by a function of its text; none if the text stays the same. Raises
    OSError, and ValueError when the function does or the file isn't text."""
    target = real_path(path)
    before = _read(target)
    after = edit(before)
    return [] if after == before else [FileEdit(target, before, after)]


def apply(changes: Iterable[FileEdit], mode: int = 0o600) -> None:
    """Make the changes, each file in one step: a reader gets the old text or the new one. A new
    file gets `mode`, less what the umask takes away.

    Raises OSError, and ValueError when a file changed after its change was computed.
    """
    for path, before, after in changes:
        if _read(path) != before:
            raise ValueError(f"{path} was changed by another program meanwhile; try again")
        if after is None:
            _remove(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)
        part.touch(mode=mode)
        if before is not None:
            part.chmod(path.stat().st_mode & 0o777)
        try:
            part.write_bytes(after.encode())
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def real_path(path: Path) -> Path:
    """The file that a path leads to. A link in a circle leads to itself: who reads it gets an
    OSError, which Path.resolve does not raise."""
    return Path(os.path.realpath(path))


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    folder = path.parent
    while folder.name in AGENT_FOLDERS and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
