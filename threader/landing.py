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
from schemas.run_state import FileStat, KeptCopy
from schemas.task_result import Write
from schemas.v2 import FailureClass
from schemas.verify_profile import VerifyProfile
from threader.adapters.base import HEALER, child_environment
from threader.guard import Guard, Mark, marks
from threader.load import Project
from threader.outcome import Failure
from threader.transaction import Transaction, compare, recover
from threader.verify import Check, verify
from threader.writes import WriteRefused, WriteRules, plan_writes

DISPLACED = "@displaced"


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
    stat: list[FileStat] = field(default_factory=list)
    commit: str | None = None
    notes: list[str] = field(default_factory=list)
    kept: list[KeptCopy] = field(default_factory=list)


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

    async def review_healer(self) -> list[str]:
        """After the healer ended in its place: what it changed by itself, in words (§8)."""

    async def land(self, cargo: Cargo, book: Book) -> None:
        """Apply and verify; calls `book` exactly once, unless cancelled before the verdict."""

    async def release(self, task_id: str) -> None:
        """The attempt is over, whatever came of it."""

    async def recover(self, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
        """Undo what a crash left half done; returns the keys undone, and what was kept of each."""

    def kept(self) -> list[KeptCopy]:
        """Copies of what others edited, kept by cancelled attempts since the last call."""


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
    cargo: Cargo,
    rules: WriteRules,
    transaction: Transaction,
    check: Check,
    book: Book,
    kept: list[KeptCopy],
) -> Landing:
    """One landing in one folder. The caller sees to it that no other runs there (§8).

    On failure with `rollback_on_failure`, and on cancellation, every file is as it was; `kept`
    takes what a cancelled one has to say.
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
    if changes:
        # At once after the plan: nobody's edit comes between what was read and what is written.
        transaction.begin(changes)
    try:
        if changes:
            transaction.apply(changes)
            landing.diff, landing.stat = await asyncio.to_thread(compare, changes)
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
            kept += transaction.rollback()
        raise
    failure = landing.failure
    if failure is not None and changes:
        landing.failure = Failure(failure.failure_class, failure.signal, own_writes=True)
        if cargo.profile.rollback_on_failure or failure.failure_class == "write_rejected":
            landing.kept += transaction.rollback()
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
        self._kept: list[KeptCopy] = []
        self._seen: dict[str, Mark] = {}
        self._protected = protected_patterns(project)
        self._guard = Guard(
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
        told = [f"files changed while it ran: {', '.join(unique[:10])}{more}"] if unique else []
        return [*told, *self._put_back("the healer")]

    def inspect(self) -> list[str]:
        return self._put_back("a worker")

    def _put_back(self, who: str) -> list[str]:
        return [
            f"{who} changed the protected file {name}; it was put back"
            + (f", and what it had become is kept as backups/{DISPLACED}/{copy}" if copy else "")
            for name, copy in self._guard.restore().items()
        ]

    async def land(self, cargo: Cargo, book: Book) -> None:
        workspace = self._project.workspace
        rules = WriteRules(workspace, cargo.staging, self._protected, cargo.task.allow_shrink)
        transaction = Transaction(workspace, self._folder / "backups" / cargo.key)
        check = make_check(self._project, self._folder, workspace, cargo)
        async with self._lock:
            await apply_and_verify(cargo, rules, transaction, check, book, self._kept)

    async def release(self, task_id: str) -> None:
        return None

    def kept(self) -> list[KeptCopy]:
        kept, self._kept = self._kept, []
        return kept

    async def recover(self, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
        return recover(self._folder / "backups", is_committed)
