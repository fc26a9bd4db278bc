"""Changes files so that the changes can always be rolled back (agent-threader-v2 §8).

A journal with the originals is on disk before the first file changes. Commit and rollback rename
the journal; one that is still active after a crash is rolled back by `recover`.
"""

import contextlib
import difflib
import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from schemas.run_state import FileStat, KeptCopy
from threader.digest import sha256
from threader.files import sync_folder, write_atomic
from threader.writes import FileChange

ACTIVE = "journal.json"
MAX_DIFF = 400_000
MAX_LINES = 5_000
"""Lines before and after together, above which a file is not compared."""


def _open_folder(root: int, parts: Sequence[str], *, create: bool) -> tuple[int, list[str]]:
    """A descriptor of the folder `parts` below `root`, without following links; and new folders."""
    current = os.dup(root)
    made: list[str] = []
    try:
        for index, part in enumerate(parts):
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
                    made.append("/".join(parts[: index + 1]))
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            following = os.open(part, flags, dir_fd=current)
            os.close(current)
            current = following
    except BaseException:
        os.close(current)
        raise
    return current, made


def temporary_name(name: str) -> str:
    """The name of the temporary file for `name`: short, however long `name` is."""
    return f".{hashlib.sha256(name.encode()).hexdigest()[:16]}.cacp-tmp"


def _write_file(root: int, path: str, data: bytes, mode: int) -> None:
    parts = PurePosixPath(path).parts
    folder, _ = _open_folder(root, parts[:-1], create=True)
    try:
        temporary = temporary_name(parts[-1])
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, mode)
            os.fdatasync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _read_file(root: int, path: str) -> bytes | None:
    """The content of `path`; None when it is not a regular file."""
    parts = PurePosixPath(path).parts
    try:
        folder, _ = _open_folder(root, parts[:-1], create=False)
        try:
            fd = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(fd, "rb") as file:
            return file.read()
    except OSError:
        return None


def _remove_file(root: int, path: str) -> None:
    parts = PurePosixPath(path).parts
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        folder, _ = _open_folder(root, parts[:-1], create=False)
        try:
            os.unlink(parts[-1], dir_fd=folder)
        finally:
            os.close(folder)


@dataclass(frozen=True)
class FileTransaction:
    """Changes below `root`, with a journal in `folder` (one per attempt, kept as the backup)."""

    root: Path
    folder: Path

    def begin(self, changes: Sequence[FileChange]) -> None:
        """Write the originals and the journal; no file changes yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        entries = []
        for index, change in enumerate(changes):
            if change.before is not None:
                write_atomic(self.folder / f"{index}.before", change.before)
            entries.append(
                {
                    "path": change.path,
                    "existed": change.before is not None,
                    "mode": change.mode,
                    "after": sha256(change.after),
                }
            )
        folders = sorted(
            {
                parent.as_posix()
                for change in changes
                for parent in PurePosixPath(change.path).parents
                if parent.parts and not (self.root / parent).exists()
            }
        )
        journal = {"root": str(self.root), "files": entries, "new_folders": folders}
        write_atomic(self.folder / ACTIVE, orjson.dumps(journal))
        sync_folder(self.folder)

    def apply(self, changes: Sequence[FileChange]) -> None:
        root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for change in changes:
                _write_file(root, change.path, change.after, change.mode)
        finally:
            os.close(root)

    def commit(self) -> None:
        self._close("committed.json")

    def rollback(self) -> list[KeptCopy]:
        """Restore every file as it was before `begin`. Safe to repeat.

        Returns copies of the files that somebody else has edited: those that are neither as before
        nor as applied.
        """
        journal = orjson.loads((self.folder / ACTIVE).read_bytes())
        kept: list[KeptCopy] = []
        root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for index, entry in reversed(list(enumerate(journal["files"]))):
                if copy := self._keep_edited(root, index, entry):
                    kept.append(kept_copy(entry["path"], copy))
                if entry["existed"]:
                    original = (self.folder / f"{index}.before").read_bytes()
                    _write_file(root, entry["path"], original, entry["mode"])
                else:
                    _remove_file(root, entry["path"])
                parts = PurePosixPath(entry["path"])
                _remove_file(root, str(parts.with_name(temporary_name(parts.name))))
            for folder in sorted(journal["new_folders"], key=len, reverse=True):
                with contextlib.suppress(OSError):
                    os.rmdir(folder, dir_fd=root)
        finally:
            os.close(root)
        self._close("rolled_back.json")
        return kept

    def _keep_edited(self, root: int, index: int, entry: dict[str, Any]) -> Path | None:
        current = _read_file(root, entry["path"])
        if current is None or sha256(current) == entry.get("after"):
            return None
        if entry["existed"] and current == (self.folder / f"{index}.before").read_bytes():
            return None
        copy = self.folder / f"{index}.edited"
        write_atomic(copy, current)
        return copy

    def _close(self, name: str) -> None:
        (self.folder / ACTIVE).replace(self.folder / name)
        sync_folder(self.folder)


def kept_copy(name: str, copy: Path) -> KeptCopy:
    """The record of a rolled-back file that somebody had edited; `copy` is in a backup folder."""
    return KeptCopy(path=name, place="/".join(copy.parts[-3:]))


def recover(backups: Path, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
    """Finish what a crash interrupted: commit the journals that `is_committed`, undo the others.

    Returns the names of those undone, with the copies that `rollback` kept of each.
    """
    undone: dict[str, list[KeptCopy]] = {}
    for journal in sorted(backups.glob(f"*/{ACTIVE}")):
        folder = journal.parent
        transaction = FileTransaction(Path(orjson.loads(journal.read_bytes())["root"]), folder)
        if is_committed(folder.name):
            transaction.commit()
        elif stat.S_ISDIR(_mode(transaction.root)):
            undone[folder.name] = transaction.rollback()
        else:
            transaction._close("rolled_back.json")
    return undone


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)


def compare(changes: Sequence[FileChange]) -> tuple[str, list[FileStat]]:
    """The changes as a unified diff, cut at 400,000 characters, and the lines of each."""
    parts: list[str] = []
    stat: list[FileStat] = []
    for change in changes:
        before, after = _lines(change.before), _lines(change.after)
        counts: tuple[int | None, int | None]
        if len(before) + len(after) > MAX_LINES:
            parts.append(f"--- a/{change.path}\n+++ b/{change.path}\n(too large to compare)\n")
            counts = (len(after), 0) if change.before is None else (None, None)
        else:
            old = f"a/{change.path}" if change.before is not None else "/dev/null"
            lines = list(difflib.unified_diff(before, after, old, f"b/{change.path}"))
            parts.extend(
                line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
                for line in lines
            )
            signs = [line[0] for line in lines[2:]]
            counts = (signs.count("+"), signs.count("-"))
        stat.append(FileStat(path=change.path, added=counts[0], removed=counts[1]))
    return "".join(parts)[:MAX_DIFF], stat


def diff_text(changes: Sequence[FileChange]) -> str:
    """The changes as a unified diff, cut at 400,000 characters."""
    return compare(changes)[0]
