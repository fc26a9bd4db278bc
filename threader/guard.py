"""Restores protected files that a worker changed directly (agent-threader-v2 §8).

Workers share the workspace and may have tools that write. Protected files may not be changed at
all, not even by `writes[]`.
"""

import contextlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from threader.files import write_atomic
from threader.paths import ALWAYS_PROTECTED, fold

SKIPPED = frozenset({".git", ".threader", "node_modules", ".venv", "__pycache__"})
MAX_KEPT = 4 * 1024 * 1024


Mark = tuple[int, int, int]
"""Change time, size and inode: they differ once a file has been written."""


@dataclass(frozen=True)
class _Kept:
    data: bytes
    mode: int
    mark: Mark


def _mark(info: os.stat_result) -> Mark:
    return info.st_ctime_ns, info.st_size, info.st_ino


def marks(workspace: Path) -> dict[str, Mark]:
    """The mark of every file outside `SKIPPED` folders, by its path in the workspace."""
    marks_by_path: dict[str, Mark] = {}
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in names:
            path = Path(folder) / name
            with contextlib.suppress(OSError):
                marks_by_path[path.relative_to(workspace).as_posix()] = _mark(path.lstat())
    return marks_by_path


class ProtectedFiles:
    """The protected files of a workspace as they were when the run began.

    Files over 4 MiB, unreadable ones and those in `SKIPPED` folders are not kept. A changed file is
    moved to the folder `displaced` before the original is restored, numbered in the order of names.
    """

    def __init__(self, workspace: Path, patterns: Sequence[str], displaced: Path) -> None:
        self._workspace = workspace
        self._displaced = displaced
        globs = [fold(pattern) for pattern in (*ALWAYS_PROTECTED, *patterns)]
        self._protected = re.compile("|".join(translate(glob) for glob in globs))
        self._kept: dict[str, _Kept] = {}
        for folder, folders, names in os.walk(workspace):
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            for name in sorted(names):
                self._keep(Path(folder) / name)

    def _keep(self, path: Path) -> None:
        relative = path.relative_to(self._workspace).as_posix()
        if not self._protected.match(fold(relative)):
            return
        with contextlib.suppress(OSError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode) and info.st_size <= MAX_KEPT:
                self._kept[relative] = _Kept(path.read_bytes(), info.st_mode & 0o7777, _mark(info))

    def restore(self) -> dict[str, str | None]:
        """Restore every kept file that was changed or removed.

        Returns their names, each with the name of its displaced version, if there is one.
        """
        restored: dict[str, str | None] = {}
        for relative, kept in self._kept.items():
            path = self._workspace / relative
            displaced = None
            try:
                info = path.lstat()
                if _mark(info) == kept.mark:
                    continue
                if path.is_file() and not path.is_symlink() and path.read_bytes() == kept.data:
                    self._kept[relative] = _Kept(kept.data, kept.mode, _mark(info))
                    continue
                self._displaced.mkdir(parents=True, exist_ok=True)
                displaced = f"{len(list(self._displaced.iterdir()))}-{path.name}"
                path.rename(self._displaced / displaced)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, kept.data)
            path.chmod(kept.mode)
            self._kept[relative] = _Kept(kept.data, kept.mode, _mark(path.stat()))
            restored[relative] = displaced
        return restored
