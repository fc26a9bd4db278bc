"""The files of `cacp pull` in a repository: read and written in place, never through links."""

from collections.abc import Iterable
from pathlib import Path

from cli.file_edit import FileEdit, apply
from cli.pull_lock import LOCK, PullLock, lock_of, lock_text
from cli.pull_plan import FilePlan, while_writing

FILE_MODE = 0o666
"""Less what the umask takes away, as git makes files."""
SIZE_MAX = 256 * 1024 * 1024


class UnusableFile(ValueError):
    """A file is there that can't be one of a pull's. The message says which and what to do."""


def read_lock(top: Path) -> PullLock | None:
    """The lock of a repository, None if it has none. Raises UnusableFile and OSError."""
    text = read_pulled(top, LOCK)
    try:
        return None if text is None else lock_of(text)
    except ValueError as error:
        raise UnusableFile(f"{LOCK} is no lock of `cacp pull`: {error}") from None


def read_all(top: Path, paths: Iterable[str]) -> dict[str, str | None]:
    """The text of each file, None for one that isn't there. Raises UnusableFile and OSError."""
    return {path: read_pulled(top, path) for path in paths}


def read_pulled(top: Path, path: str) -> str | None:
    place = top
    for step in Path(path).parts:
        if place != top and place.exists() and not place.is_dir():
            raise UnusableFile(f"{place.relative_to(top)} is no folder: move it away")
        place /= step
        if place.is_symlink():
            raise UnusableFile(
                f"{place.relative_to(top)} is a symbolic link, and none is followed: remove it"
            )
    if not place.exists():
        return None
    if not place.is_file() or place.stat().st_size > SIZE_MAX:
        raise UnusableFile(f"{path} is no file that a pull wrote: move it away")
    try:
        return place.read_bytes().decode()
    except UnicodeDecodeError:
        raise UnusableFile(f"{path} is not text: move it away") from None


def write_all(
    top: Path, plan: FilePlan, disk: dict[str, str | None], old: PullLock | None, new: PullLock
) -> bool:
    """Carry out a plan; whether there was anything to do. Raises OSError, and ValueError if another
    program changes a file meanwhile.

    However it ends, each file is as the lock says: it tells what files may have been before until
    all are written.
    """
    before = read_pulled(top, LOCK)
    after = lock_text(new)
    edits = [FileEdit(top / path, disk[path], text) for path, text in plan.write.items()]
    edits += [FileEdit(top / path, disk[path], None) for path in plan.remove]
    if not edits and before == after:
        return False
    if edits:
        during = lock_text(while_writing(old, new))
        apply([FileEdit(top / LOCK, before, during)] if during != before else [], FILE_MODE)
        apply(edits, FILE_MODE)
        before = during
    if before != after:
        apply([FileEdit(top / LOCK, before, after)], FILE_MODE)
    return True
