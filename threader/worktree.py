"""`isolation: worktree`: each task in its own git worktree, merged in order (agent-threader-v2 §8).

Workers run and are verified concurrently, each in its own tree. What a worker edits there directly
is discarded: only `writes[]` count. Merges happen one at a time, in the order in which the attempts
started, and are verified again in the workspace.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.run_state import KeptCopy
from schemas.v2 import FailureClass
from threader.adapters.base import HEALER
from threader.branch import PinnedBranch
from threader.errors import NotReady
from threader.files import remove_tree
from threader.git import GitFailed
from threader.landing import (
    AttemptResult,
    Landing,
    RecordLanding,
    apply_and_verify,
    protected_patterns,
    verify_context,
)
from threader.load import ThreadProject
from threader.merge_undo import MERGE, MergeJournal, MergeUndo
from threader.outcome import Failure
from threader.repository import Repository
from threader.signatures import one_line
from threader.task_trees import TaskTrees
from threader.transaction import FileTransaction, recover
from threader.verify import VerifyContext, verify
from threader.writes import WriteRules


@dataclass
class _Turn:
    """The place of an attempt among those that merge."""

    before: asyncio.Event | None
    done: asyncio.Event
    base: str = ""
    """The commit that its worktree starts from."""


class WorktreeSite:
    """`tell` is called with what git waits for, and None when that is over."""

    def __init__(
        self,
        project: ThreadProject,
        folder: Path,
        tell: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        lock_sec = project.manifest.policy.git_lock_sec
        self._project = project
        self._folder = folder
        self._repository = Repository(project.workspace, folder, lock_sec, tell)
        self._branch = PinnedBranch(self._repository, folder)
        self._trees = TaskTrees(self._repository, self._branch, folder)
        self._undo = MergeUndo(self._repository, self._branch)
        self._merging = asyncio.Lock()
        self._protected = protected_patterns(project)
        self._turns: dict[str, _Turn] = {}
        self._last: asyncio.Event | None = None
        self._prefix = ""
        self._backup_copies: list[KeptCopy] = []

    async def prepare(self, task_id: str) -> Path:
        turn = _Turn(self._last, asyncio.Event())
        self._turns[task_id], self._last = turn, turn.done
        turn.base = await self._trees.add(task_id)
        return self._trees.path(task_id) / self._prefix

    def inspect(self) -> list[str]:
        return []

    async def review_healer(self) -> list[str]:
        if not await self._trees.drop_edits(HEALER, self._turns[HEALER].base):
            return []
        return ["it edited files directly; the edits were discarded, only its patches count"]

    async def release(self, task_id: str) -> None:
        turn = self._turns.pop(task_id, None)
        if turn is not None:
            turn.done.set()
        await self._trees.remove(task_id)

    async def land(self, result: AttemptResult, record: RecordLanding) -> None:
        task_id = result.task.id
        turn, tree = self._turns[task_id], self._trees.path(task_id)
        place = tree / self._prefix
        meddled = await self._trees.drop_edits(task_id, turn.base)
        rules = WriteRules(place, result.staging, self._protected, result.task.allow_shrink)
        transaction = FileTransaction(place, tree.with_name(f"@{tree.name}"))
        check = verify_context(self._project, self._folder, place, result)
        landing = await apply_and_verify(result, rules, transaction, check, lambda _: None, [])
        remove_tree(transaction.folder)
        if meddled:
            landing.notes.append("the worker edited files directly; only its writes[] count")
        if landing.failure is not None:
            record(landing)
            return
        names = [self._prefix + name for name in landing.files]
        message = f"{task_id}: {one_line(result.summary)[:200]}"
        commit = await self._trees.commit(task_id, names, message)
        if turn.before is not None:
            await turn.before.wait()
        async with self._merging:
            if commit is None:
                record(landing)
            else:
                check = replace(check, cwd=self._project.workspace)
                await self._merge(commit, result, check, landing, record)

    async def _merge(
        self,
        commit: str,
        result: AttemptResult,
        check: VerifyContext,
        landing: Landing,
        record: RecordLanding,
    ) -> None:
        backup = self._folder / "backups" / result.key
        backup.mkdir(parents=True, exist_ok=True)
        await self._branch.check()
        head = await self._repository.git("rev-parse", "HEAD")
        journal = MergeJournal(backup, head, commit)
        journal.write()
        try:
            landing.failure = await self._merge_and_verify(commit, result, check)
            landing.commit = await self._undo.merge_of(journal)
        except asyncio.CancelledError:
            self._backup_copies += await asyncio.shield(self._undo.take_back(backup))
            raise
        if landing.failure is not None:
            landing.backup_copies += await self._undo.take_back(backup)
            landing.rolled_back, landing.commit = True, None
            record(landing)
            return
        record(landing)
        journal.close(merged=True)
        await self._branch.follow_merge()

    async def _merge_and_verify(
        self, commit: str, result: AttemptResult, check: VerifyContext
    ) -> Failure | None:
        git = self._repository.git
        message = f"Merge task {result.task.id}"
        try:
            await git("merge", "--no-ff", "--no-edit", "-m", message, commit)
        except GitFailed as error:
            conflicts = ""
            with suppress(GitFailed):
                conflicts = await git("diff", "--name-only", "--diff-filter=U")
            return Failure(FailureClass.MERGE_CONFLICT, conflicts or str(error))
        failure = await verify(result.profile, check)
        if failure is None:
            return None
        return Failure(failure.failure_class, failure.signal, own_writes=True)

    def backup_copies(self) -> list[KeptCopy]:
        copies, self._backup_copies = self._backup_copies, []
        return copies

    async def recover(self, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
        undone = recover(self._folder / "backups", is_committed)
        try:
            await self._recover_merges(is_committed, undone)
        except NotReady:
            self._backup_copies += [copy for copies in undone.values() for copy in copies]
            raise
        return undone

    async def _recover_merges(
        self, is_committed: Callable[[str], bool], undone: dict[str, list[KeptCopy]]
    ) -> None:
        """Take back unfinished merges and add them to `undone`. Raises NotReady."""
        try:
            self._prefix = await self._repository.git("rev-parse", "--show-prefix")
            await self._branch.pin()
            for path in sorted((self._folder / "backups").glob(f"*/{MERGE}")):
                if is_committed(path.parent.name):
                    MergeJournal.read(path.parent).close(merged=True)
                else:
                    await self._undo.break_locks(path)
                    undone[path.parent.name] = await self._undo.take_back(path.parent, crashed=True)
            await self._trees.remove_all()
            dirty = await self._repository.git("status", "--porcelain", "--untracked-files=no")
        except GitFailed as error:
            raise NotReady(
                f"isolation worktree: the workspace must be a git tree: {error}"
            ) from None
        if dirty:
            raise NotReady(
                "isolation worktree: the workspace has uncommitted changes; commit or stash them"
            )
