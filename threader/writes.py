"""Plans the file changes of a result's `writes[]` (agent-threader-v2 §8).

Reads the workspace and the staging area; changes nothing. One bad write refuses all of them.
"""

import hashlib
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.task_result import Write
from threader.paths import PathRefused, check_path, matches, normalise

MAX_STAGED = 64 * 1024 * 1024
SHRINK_FLOOR = 100


class WriteRefused(Exception):
    """A write breaks a safeguard; `signal` is stable text for the signature."""

    def __init__(self, signal: str, message: str) -> None:
        super().__init__(message)
        self.signal = signal


@dataclass
class FileChange:
    """The change of one file. `before` is None for a new file; `mode` has the permission bits."""

    path: str
    before: bytes | None
    after: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class WriteRules:
    workspace: Path
    staging: Path
    protected: Sequence[str]
    allow_shrink: Sequence[str]


def _real_path(rules: WriteRules, clean: str) -> Path:
    """The file at `clean`. Its folders may be links, but only within the workspace."""
    target = rules.workspace / clean
    folder = target.parent.resolve()
    root = rules.workspace.resolve()
    if not folder.is_relative_to(root):
        raise WriteRefused("path_escape", f"{clean}: a symbolic link leads out of the workspace")
    relative = (folder / target.name).relative_to(root).as_posix()
    try:
        check_path(relative, rules.protected)
    except PathRefused as error:
        raise WriteRefused("protected_file", f"{clean}: {error}") from None
    return folder / target.name


def _read_target(path: Path, clean: str) -> tuple[bytes | None, int]:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None, 0o644
    except NotADirectoryError:
        raise WriteRefused("not_a_folder", f"{clean}: part of the path is a file") from None
    if not stat.S_ISREG(info.st_mode):
        raise WriteRefused("not_a_file", f"{clean}: is not a regular file")
    return path.read_bytes(), stat.S_IMODE(info.st_mode)


def _staged(rules: WriteRules, reference: str) -> bytes:
    try:
        clean = normalise(reference)
    except PathRefused as error:
        raise WriteRefused("bad_content_ref", f"content_ref {reference!r:.120}: {error}") from None
    path = (rules.staging / clean).resolve()
    if not path.is_relative_to(rules.staging.resolve()):
        raise WriteRefused("bad_content_ref", f"content_ref {clean}: leads out of the staging area")
    if not path.is_file():
        raise WriteRefused("bad_content_ref", f"content_ref {clean}: the file was not staged")
    if path.stat().st_size > MAX_STAGED:
        raise WriteRefused("bad_content_ref", f"content_ref {clean}: larger than 64 MiB")
    data = path.read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WriteRefused(
            "bad_content_ref", f"content_ref {clean}: byte {error.start} is not UTF-8"
        ) from None
    return data


def _content(rules: WriteRules, write: Write) -> bytes:
    if write.content_ref is not None and not write.content:
        return _staged(rules, write.content_ref)
    try:
        return (write.content or "").encode("utf-8")
    except UnicodeEncodeError:
        raise WriteRefused("not_utf8", f"{write.path}: the content is not valid Unicode") from None


def _check_precondition(write: Write, change: FileChange) -> None:
    if write.expected is None:
        return
    actual = hashlib.sha256(change.after if change.before is not None else b"").hexdigest()
    if change.before is None or actual != write.expected:
        raise WriteRefused(
            "stale_base", f"{change.path}: sha256_before does not match the file as it is now"
        )


def _apply(rules: WriteRules, write: Write, change: FileChange, *, exists: bool) -> None:
    content = _content(rules, write)
    if write.op == "create" and exists:
        raise WriteRefused("already_exists", f"{change.path}: create, but the file exists")
    if write.op == "replace" and not exists:
        raise WriteRefused("no_such_file", f"{change.path}: replace, but the file does not exist")
    _check_precondition(write, change)
    if write.op == "append":
        change.after += content
        return
    change.after = content


def _check_shrinkage(change: FileChange, allowed: Sequence[str]) -> None:
    """Refuse a result that shrinks a file too much, in one write or in several (§8)."""
    old, new = len(change.before or b""), len(change.after)
    if old > SHRINK_FLOOR and new * 2 < old and not matches(change.path, allowed):
        raise WriteRefused(
            "shrinkage",
            f"{change.path}: replace would shrink it from {old} to {new} bytes; "
            "send the whole file, or let the task's allow_shrink name it",
        )


def plan_writes(writes: Sequence[Write], rules: WriteRules) -> list[FileChange]:
    """The file changes of `writes`, in order of first mention. Raises WriteRefused."""
    changes: dict[Path, FileChange] = {}
    for write in writes:
        try:
            _plan(write, rules, changes)
        except PathRefused as error:
            signal = "protected_file" if "protected" in str(error) else "path_escape"
            raise WriteRefused(signal, f"{write.path!r:.200}: {error}") from None
        except (OSError, RuntimeError) as error:
            # Before Python 3.13 a cycle of links is a RuntimeError.
            reason = getattr(error, "strerror", None) or "a cycle of symbolic links"
            raise WriteRefused("unusable_path", f"{write.path!r:.200}: {reason}") from None
    for change in changes.values():
        _check_shrinkage(change, rules.allow_shrink)
    return list(changes.values())


def _plan(write: Write, rules: WriteRules, changes: dict[Path, FileChange]) -> None:
    clean = check_path(write.path, rules.protected)
    path = _real_path(rules, clean)
    exists = path in changes
    if not exists:
        before, mode = _read_target(path, clean)
        relative = path.relative_to(rules.workspace.resolve()).as_posix()
        changes[path] = FileChange(relative, before, before or b"", mode)
        exists = before is not None
    _apply(rules, write, changes[path], exists=exists)
