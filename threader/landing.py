"""Brings a result's writes into the workspace: apply, verify, keep or roll back (§8).

One landing at a time per workspace. Workers run concurrently, landings do not, so that a rollback
never erases what another task wrote.
"""

import asyncio
import glob
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from schemas.manifest import Manifest, ManifestTask
from schemas.run_state import FileStat, KeptCopy
from schemas.task_result import Write
from schemas.v2 import FailureClass
from schemas.verify_profile import VerifyProfile
from threader.adapters.base import HEALER, child_environment
from threader.guard import Mark, ProtectedFiles, marks
from threader.load import ThreadProject
from threader.outcome import Failure
from threader.transaction import FileTransaction, compare, recover
from threader.verify import VerifyContext, verify
from threader.writes import WriteRefused, WriteRules, plan_writes

DISPLACED = "@displaced"


class SiteFailed(Exception):
    """The site itself failed, not the task's work. The text has no paths of the machine."""


@dataclass
class Landing:
    """What became of the writes of one attempt."""

    failure: Failure | None = None
    rolled_back: bool = False
    verify_sec: float | None = None
    """How long verification took; None when there were no steps."""
    diff: str = ""
    files: list[str] = field(default_factory=list)
    stat: list[FileStat] = field(default_factory=list)
    commit: str | None = None
    notes: list[str] = field(default_factory=list)
    backup_copies: list[KeptCopy] = field(default_factory=list)


RecordLanding = Callable[[Landing], None]
"""Records the attempt. It is called before the writes become final, so that after a crash the
checkpoint shows whether they count."""


@dataclass(frozen=True)
class AttemptResult:
    """The writes of an attempt to land; `key` names its backup folder."""

    task: ManifestTask
    key: str
    writes: Sequence[Write]
    profile: VerifyProfile
    staging: Path
    verify_log: Path
    summary: str


class WorkSite(Protocol):
    """Where workers run and their writes land: the workspace itself, or a worktree per task."""

    async def prepare(self, task_id: str) -> Path:
        """The folder for one attempt of `task_id`."""

    def inspect(self) -> list[str]:
        """After a worker ended: restore protected files that it changed; returns notes on them."""

    async def review_healer(self) -> list[str]:
        """After the healer ended: notes on what it changed directly (§8)."""

    async def land(self, result: AttemptResult, record: RecordLanding) -> None:
        """Apply and verify; calls `record` exactly once, unless cancelled before the verdict."""

    async def release(self, task_id: str) -> None:
        """The attempt is over, whatever its outcome."""

    async def recover(self, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
        """Undo what a crash left unfinished; returns the keys undone, and copies kept of each."""

    def backup_copies(self) -> list[KeptCopy]:
        """Copies of files that others edited, from attempts cancelled since the last call."""


def protected_patterns(project: ThreadProject) -> list[str]:
    """The manifest's own denylist, and the files that configure the run."""
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


def verify_context(
    project: ThreadProject, folder: Path, cwd: Path, result: AttemptResult
) -> VerifyContext:
    limit = project.manifest.policy.max_log_bytes
    environ = child_environment(project.manifest)
    return VerifyContext(cwd, result.verify_log, str(folder), limit, environ)


async def apply_and_verify(
    result: AttemptResult,
    rules: WriteRules,
    transaction: FileTransaction,
    check: VerifyContext,
    record: RecordLanding,
    backup_copies: list[KeptCopy],
) -> Landing:
    """One landing in one folder. The caller makes sure that no other runs there (§8).

    On failure with `rollback_on_failure`, and on cancellation, every file is restored. Copies that
    a cancelled landing keeps are added to `backup_copies`.
    """
    landing = Landing()
    try:
        changes = plan_writes(result.writes, rules)
    except WriteRefused as error:
        landing.failure = Failure(FailureClass.WRITE_REJECTED, error.signal)
        landing.notes.append(str(error))
        record(landing)
        return landing
    landing.files = [change.path for change in changes]
    if changes:
        # Directly after the plan: no edit comes between what was read and what is written.
        transaction.begin(changes)
    try:
        if changes:
            transaction.apply(changes)
            landing.diff, landing.stat = await asyncio.to_thread(compare, changes)
        began = time.monotonic()
        landing.failure = await verify(result.profile, check)
        if result.profile.steps:
            landing.verify_sec = round(time.monotonic() - began, 3)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        landing.failure = Failure(FailureClass.WRITE_REJECTED, f"cannot write {reason}")
        landing.notes.append(f"cannot write {error.filename or 'a file'}: {reason}")
    except asyncio.CancelledError:
        if changes:
            backup_copies += transaction.rollback()
        raise
    failure = landing.failure
    if failure is not None and changes:
        landing.failure = Failure(failure.failure_class, failure.signal, own_writes=True)
        if result.profile.rollback_on_failure or failure.failure_class == "write_rejected":
            landing.backup_copies += transaction.rollback()
            landing.rolled_back = True
    record(landing)
    if changes and not landing.rolled_back:
        transaction.commit()
    return landing


class SharedSite:
    """All tasks work in the workspace itself."""

    def __init__(self, project: ThreadProject, folder: Path) -> None:
        self._project = project
        self._folder = folder
        self._lock = asyncio.Lock()
        self._backup_copies: list[KeptCopy] = []
        self._seen: dict[str, Mark] = {}
        self._protected = protected_patterns(project)
        self._guard = ProtectedFiles(
            project.workspace, project.manifest.protected, folder / "backups" / DISPLACED
        )

    async def prepare(self, task_id: str) -> Path:
        if task_id == HEALER:
            self._seen = await asyncio.to_thread(marks, self._project.workspace)
        return self._project.workspace

    async def review_healer(self) -> list[str]:
        now = await asyncio.to_thread(marks, self._project.workspace)
        names = sorted(name for name, _ in self._seen.items() ^ now.items())
        unique = list(dict.fromkeys(names))
        more = f" and {len(unique) - 10} more" if len(unique) > 10 else ""
        notes = [f"files changed while it ran: {', '.join(unique[:10])}{more}"] if unique else []
        return [*notes, *self._restore_protected("the healer")]

    def inspect(self) -> list[str]:
        return self._restore_protected("a worker")

    def _restore_protected(self, actor: str) -> list[str]:
        return [
            f"{actor} changed the protected file {name}; it was restored"
            + (f", and the changed version is kept as backups/{DISPLACED}/{copy}" if copy else "")
            for name, copy in self._guard.restore().items()
        ]

    async def land(self, result: AttemptResult, record: RecordLanding) -> None:
        workspace = self._project.workspace
        rules = WriteRules(workspace, result.staging, self._protected, result.task.allow_shrink)
        transaction = FileTransaction(workspace, self._folder / "backups" / result.key)
        check = verify_context(self._project, self._folder, workspace, result)
        async with self._lock:
            await apply_and_verify(result, rules, transaction, check, record, self._backup_copies)

    async def release(self, task_id: str) -> None:
        return None

    def backup_copies(self) -> list[KeptCopy]:
        copies, self._backup_copies = self._backup_copies, []
        return copies

    async def recover(self, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
        return recover(self._folder / "backups", is_committed)
