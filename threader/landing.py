"""Brings a result's writes into the workspace: apply, verify, keep or take back (§8).

One landing at a time per workspace. Workers run beside each other; their writes do not, so that
a rollback can never erase what another task wrote.
"""

import asyncio
import glob
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from schemas.manifest import Manifest, ManifestTask
from schemas.task_result import Write
from schemas.v2 import FailureClass
from schemas.verify_profile import VerifyProfile
from threader.adapters.base import child_environment
from threader.guard import Guard
from threader.load import Project
from threader.outcome import Failure
from threader.transaction import Transaction, diff_text, recover
from threader.verify import Check, verify
from threader.writes import WriteRefused, WriteRules, plan_writes


class SiteFailed(Exception):
    """The place itself failed, not the task's work; says how, without paths of the machine."""


@dataclass
class Landing:
    """How the writes of one attempt fared."""

    failure: Failure | None = None
    rolled_back: bool = False
    verify_sec: float | None = None
    """How long verification took; None when there were no steps."""
    diff: str = ""
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Book = Callable[[Landing], None]
"""Writes the attempt down. It is called before the writes become final, so that after a crash the
checkpoint tells whether they count."""


@dataclass(frozen=True)
class Cargo:
    """What an attempt wants to land, and the name of its backup folder."""

    task: ManifestTask
    key: str
    writes: Sequence[Write]
    profile: VerifyProfile
    staging: Path
    verify_log: Path
    summary: str


class Site(Protocol):
    """Where workers run and their writes land: the workspace itself, or a worktree per task."""

    async def prepare(self, task_id: str) -> Path:
        """The folder for one attempt of `task_id`."""

    def inspect(self) -> list[str]:
        """After a worker ended: undo what it had no right to change, and say what that was."""

    async def land(self, cargo: Cargo, book: Book) -> None:
        """Apply and verify; calls `book` exactly once, unless cancelled before the verdict."""

    async def release(self, task_id: str) -> None:
        """The attempt is over, whatever came of it."""

    async def recover(self, is_committed: Callable[[str], bool]) -> list[str]:
        """Undo what a crash left half done; returns the keys undone."""


def protected_patterns(project: Project) -> list[str]:
    """The manifest's own denylist, and the files that steer the run."""
    manifest: Manifest = project.manifest
    references = {project.path.name, manifest.verify_profiles, *manifest.context_refs}
    for task in manifest.tasks:
        references |= {task.prompt_ref, *task.context_refs}
    patterns = list(manifest.protected)
    for reference in sorted(references):
        path = (project.root / reference).resolve()
        if path.is_relative_to(project.workspace):
            patterns.append(glob.escape(path.relative_to(project.workspace).as_posix()))
    return patterns


def make_check(project: Project, folder: Path, cwd: Path, cargo: Cargo) -> Check:
    limit = project.manifest.policy.max_log_bytes
    environ = child_environment(project.manifest)
    return Check(cwd, cargo.verify_log, str(folder), limit, environ)


async def apply_and_verify(
    cargo: Cargo, rules: WriteRules, transaction: Transaction, check: Check, book: Book
) -> Landing:
    """One landing in one folder. The caller sees to it that no other runs there (§8).

    On failure with `rollback_on_failure`, and on cancellation, every file is as it was.
    """
    landing = Landing()
    try:
        changes = plan_writes(cargo.writes, rules)
    except WriteRefused as error:
        landing.failure = Failure(FailureClass.WRITE_REJECTED, error.signal)
        landing.notes.append(str(error))
        book(landing)
        return landing
    landing.files = [change.path for change in changes]
    landing.diff = await asyncio.to_thread(diff_text, changes) if changes else ""
    if changes:
        transaction.begin(changes)
    try:
        if changes:
            transaction.apply(changes)
        began = time.monotonic()
        landing.failure = await verify(cargo.profile, check)
        if cargo.profile.steps:
            landing.verify_sec = round(time.monotonic() - began, 3)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        landing.failure = Failure(FailureClass.WRITE_REJECTED, f"cannot write {reason}")
        landing.notes.append(f"cannot write {error.filename or 'a file'}: {reason}")
    except asyncio.CancelledError:
        if changes:
            transaction.rollback()
        raise
    failure = landing.failure
    if failure is not None and changes:
        landing.failure = Failure(failure.failure_class, failure.signal, own_writes=True)
        if cargo.profile.rollback_on_failure or failure.failure_class == "write_rejected":
            transaction.rollback()
            landing.rolled_back = True
    book(landing)
    if changes and not landing.rolled_back:
        transaction.commit()
    return landing


class SharedSite:
    """All tasks work in the workspace itself."""

    def __init__(self, project: Project, folder: Path) -> None:
        self._project = project
        self._folder = folder
        self._lock = asyncio.Lock()
        self._protected = protected_patterns(project)
        self._guard = Guard(
            project.workspace, project.manifest.protected, folder / "backups" / "@displaced"
        )

    async def prepare(self, task_id: str) -> Path:
        return self._project.workspace

    def inspect(self) -> list[str]:
        names = self._guard.restore()
        return [f"a worker changed the protected file {name}; it was put back" for name in names]

    async def land(self, cargo: Cargo, book: Book) -> None:
        workspace = self._project.workspace
        rules = WriteRules(workspace, cargo.staging, self._protected, cargo.task.allow_shrink)
        transaction = Transaction(workspace, self._folder / "backups" / cargo.key)
        check = make_check(self._project, self._folder, workspace, cargo)
        async with self._lock:
            await apply_and_verify(cargo, rules, transaction, check, book)

    async def release(self, task_id: str) -> None:
        return None

    async def recover(self, is_committed: Callable[[str], bool]) -> list[str]:
        return recover(self._folder / "backups", is_committed)
