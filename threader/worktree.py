"""One git worktree per task, merged back in order and verified again (`isolation: worktree`).

Workers and their verification run beside each other, each in its own tree. What a worker edits
there by itself is discarded: only `writes[]` count (§8). Merges happen one at a time, in the order
in which the attempts started.
"""

import asyncio
import contextlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from schemas.run_state import KeptCopy
from schemas.v2 import FailureClass
from threader.adapters.base import HEALER
from threader.errors import NotReady
from threader.files import is_newer, remove_tree, write_atomic
from threader.git import GitFailed, PatientGit, git
from threader.landing import (
    Book,
    Cargo,
    Landing,
    apply_and_verify,
    make_check,
    protected_patterns,
)
from threader.load import Project
from threader.outcome import Failure
from threader.signatures import one_line
from threader.transaction import Transaction, kept_copy, recover
from threader.verify import Check, verify
from threader.writes import WriteRules

MERGE = "merge.json"
BRANCH = "branch"
"""Names the branch that the run merges into, whatever is checked out later."""
DETACHED = "a detached HEAD at "
"""Stands before a commit in the place of a branch."""


@dataclass
class _Turn:
    base: str
    """The commit that the worktree starts from."""
    before: asyncio.Event | None
    done: asyncio.Event


class WorktreeSite:
    """`tell` hears which lock of another git is waited for, and None when that is over."""

    def __init__(
        self,
        project: Project,
        folder: Path,
        tell: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        self._project = project
        self._folder = folder
        self._merging = asyncio.Lock()
        self._managing = asyncio.Lock()
        self._protected = protected_patterns(project)
        self._turns: dict[str, _Turn] = {}
        self._last: asyncio.Event | None = None
        self._prefix = ""
        self._kept: list[KeptCopy] = []
        self._patient = PatientGit(str(folder), project.manifest.policy.git_lock_sec, tell)

    async def _git(self, folder: Path, *args: str) -> str:
        if folder.is_relative_to(self._folder):
            # Nobody but its worker works in a task's tree: a lock in there will never go.
            return await git(folder, str(self._folder), *args)
        return await self._patient(folder, *args)

    def _tree(self, task_id: str) -> Path:
        return self._folder / "worktrees" / task_id

    async def prepare(self, task_id: str) -> Path:
        workspace = self._project.workspace
        turn = _Turn("", self._last, asyncio.Event())
        self._turns[task_id], self._last = turn, turn.done
        tree = self._tree(task_id)
        async with self._managing:
            await self._check_branch()
            turn.base = await self._git(workspace, "rev-parse", "HEAD")
            await self._discard(tree)
            await self._git(workspace, "worktree", "add", "--detach", "-ff", str(tree), turn.base)
        return tree / self._prefix

    def inspect(self) -> list[str]:
        return []

    async def release(self, task_id: str) -> None:
        turn = self._turns.pop(task_id, None)
        if turn is not None:
            turn.done.set()
        async with self._managing:
            await self._discard(self._tree(task_id))

    async def _discard(self, tree: Path) -> None:
        with contextlib.suppress(GitFailed):
            await self._git(self._project.workspace, "worktree", "remove", "-ff", str(tree))
        remove_tree(tree)

    async def land(self, cargo: Cargo, book: Book) -> None:
        tree = self._tree(cargo.task.id)
        place = tree / self._prefix
        meddled = await self._drop_direct_edits(tree, self._turns[cargo.task.id].base)
        rules = WriteRules(place, cargo.staging, self._protected, cargo.task.allow_shrink)
        transaction = Transaction(place, tree.with_name(f"@{tree.name}"))
        check = make_check(self._project, self._folder, place, cargo)
        landing = await apply_and_verify(cargo, rules, transaction, check, lambda _: None, [])
        remove_tree(transaction.folder)
        if meddled:
            landing.notes.append("the worker edited files by itself; only its writes[] count")
        if landing.failure is not None:
            book(landing)
            return
        commit = await self._commit(tree, cargo, landing)
        turn = self._turns[cargo.task.id]
        if turn.before is not None:
            await turn.before.wait()
        async with self._merging:
            await self._merge(
                commit, cargo, replace(check, cwd=self._project.workspace), landing, book
            )

    async def _branch(self) -> str:
        try:
            return await self._git(self._project.workspace, "symbolic-ref", "--short", "HEAD")
        except GitFailed:
            return DETACHED + await self._git(self._project.workspace, "rev-parse", "HEAD")

    async def _pin_branch(self) -> None:
        """A run merges into the branch that it began on. Raises NotReady on another.

        On a detached HEAD it merges into whatever is built on the commit that it began on.
        """
        if not (self._folder / BRANCH).exists():
            await self._pin()
        await self._check_branch()

    async def _pin(self) -> None:
        write_atomic(self._folder / BRANCH, (await self._branch()).encode())

    async def _check_branch(self) -> None:
        pinned, found = (self._folder / BRANCH).read_text(), await self._branch()
        if found == pinned:
            return
        commit = pinned.removeprefix(DETACHED)
        detached = commit != pinned
        if detached and found.startswith(DETACHED) and await self._is_built_on(commit):
            return
        where = ["--detach", commit] if detached else [pinned]
        back = shlex.join(["git", "-C", str(self._project.workspace), "checkout", *where])
        raise NotReady(
            f"isolation worktree: this run merges into {pinned}, and the workspace is on "
            f"{found}; `{back}` and resume"
        )

    async def _is_built_on(self, commit: str) -> bool:
        try:
            await self._git(self._project.workspace, "merge-base", "--is-ancestor", commit, "HEAD")
        except GitFailed:
            return False
        return True

    async def review_healer(self) -> list[str]:
        if not await self._drop_direct_edits(self._tree(HEALER), self._turns[HEALER].base):
            return []
        return ["it edited files by itself, which is discarded; only its patches count"]

    async def _drop_direct_edits(self, tree: Path, base: str) -> bool:
        """Undo what was edited, staged or committed in a tree; whether there was anything."""
        changed = await self._git(tree, "status", "--porcelain")
        if not changed and await self._git(tree, "rev-parse", "HEAD") == base:
            return False
        await self._git(tree, "checkout", "--quiet", "--force", "--detach", base)
        await self._git(tree, "reset", "--hard", "--quiet", base)
        await self._git(tree, "clean", "-fdq")
        return True

    async def _commit(self, tree: Path, cargo: Cargo, landing: Landing) -> str | None:
        if not landing.files:
            return None
        await self._git(
            tree, "add", "--force", "--", *(self._prefix + name for name in landing.files)
        )
        if not await self._git(tree, "status", "--porcelain", "--untracked-files=no"):
            return None
        message = f"{cargo.task.id}: {one_line(cargo.summary)[:200]}"
        await self._git(tree, "commit", "--quiet", "-m", message)
        return await self._git(tree, "rev-parse", "HEAD")

    async def _merge(
        self, commit: str | None, cargo: Cargo, check: Check, landing: Landing, book: Book
    ) -> None:
        workspace = self._project.workspace
        if commit is None:
            book(landing)
            return
        backup = self._folder / "backups" / cargo.key
        backup.mkdir(parents=True, exist_ok=True)
        await self._check_branch()
        head = await self._git(workspace, "rev-parse", "HEAD")
        write_atomic(backup / MERGE, orjson.dumps({"head": head, "commit": commit}))
        try:
            landing.failure = await self._merge_and_verify(commit, cargo, check)
            landing.commit = await self._merge_of({"head": head, "commit": commit})
        except asyncio.CancelledError:
            self._kept += await asyncio.shield(self._take_back(backup))
            raise
        if landing.failure is not None:
            landing.kept += await self._take_back(backup)
            landing.rolled_back, landing.commit = True, None
            book(landing)
            return
        book(landing)
        (backup / MERGE).replace(backup / "merged.json")
        if (self._folder / BRANCH).read_text().startswith(DETACHED):
            # No branch moved with it: who goes elsewhere in between is led back to this merge.
            with contextlib.suppress(GitFailed):
                await self._pin()

    async def _merge_and_verify(self, commit: str, cargo: Cargo, check: Check) -> Failure | None:
        workspace = self._project.workspace
        message = f"Merge task {cargo.task.id}"
        try:
            await self._git(workspace, "merge", "--no-ff", "--no-edit", "-m", message, commit)
        except GitFailed as error:
            conflicts = ""
            with contextlib.suppress(GitFailed):
                conflicts = await self._git(workspace, "diff", "--name-only", "--diff-filter=U")
            return Failure(FailureClass.MERGE_CONFLICT, conflicts or str(error))
        failure = await verify(cargo.profile, check)
        if failure is None:
            return None
        return Failure(failure.failure_class, failure.signal, own_writes=True)

    async def _take_back(self, backup: Path, *, crashed: bool = False) -> list[KeptCopy]:
        """The branch and the merged files as they were before the merge, whatever state it is in.

        Other files and commits are left alone, and what somebody made of a merged file is kept as
        a copy; returns those. A merge that git refused has changed nothing, unless
        git itself `crashed`. Raises NotReady when git cannot do it.
        """
        await self._check_branch()
        journal = orjson.loads((backup / MERGE).read_bytes())
        workspace = self._project.workspace
        kept: list[KeptCopy] = []
        try:
            if await self._commit_of("MERGE_HEAD") == journal["commit"]:
                try:
                    await self._git(workspace, "merge", "--abort")
                except GitFailed:
                    # Somebody committed while git merged: it stopped with an index of before.
                    crashed = True
            merge = await self._merge_of(journal)
            if merge is not None and merge != await self._commit_of("HEAD"):
                await self._revert(merge)
            elif merge is not None:
                kept = await self._restore(journal, f"{merge}^1", [merge], backup)
            elif crashed:
                kept = await self._restore(journal, "HEAD", ["HEAD", journal["commit"]], backup)
        except GitFailed as error:
            raise NotReady(
                f"cannot take back the merge of {backup.name}: {error}; bring the workspace to "
                f"{journal['head'][:12]}, or revert the merge there, and resume"
            ) from None
        (backup / MERGE).replace(backup / "taken_back.json")
        return kept

    async def _commit_of(self, name: str) -> str | None:
        try:
            return await self._git(self._project.workspace, "rev-parse", "--verify", "-q", name)
        except GitFailed:
            return None

    async def _merge_of(self, journal: dict[str, str]) -> str | None:
        """The commit of the merge, whoever committed before or after it; None without one."""
        since = f"{journal['head']}..HEAD"
        told = await self._git(self._project.workspace, "rev-list", "--merges", "--parents", since)
        rows = (line.split() for line in told.splitlines())
        return next((row[0] for row in rows if journal["commit"] in row[2:]), None)

    async def _revert(self, merge: str) -> None:
        """Undo a merge that somebody has built on. Raises GitFailed when that is theirs to do."""
        workspace = self._project.workspace
        try:
            await self._git(workspace, "revert", "--no-edit", "-m", "1", merge)
        except GitFailed:
            if await self._commit_of("REVERT_HEAD") != merge:
                # Somebody has reverted it already, or has edits of their own in its files.
                if await self._names(workspace, "diff", "--name-only", "-z", f"{merge}^1", "HEAD"):
                    raise
                return
            await self._git(workspace, "revert", "--abort")
            raise GitFailed("somebody has committed on top of it") from None

    async def _restore(
        self, journal: dict[str, str], base: str, ours: list[str], backup: Path
    ) -> list[KeptCopy]:
        """The branch and the merged files as in `base`; copies of what is not in `ours` either."""
        workspace = self._project.workspace
        top = Path(await self._git(workspace, "rev-parse", "--show-toplevel"))
        between = f"{journal['head']}...{journal['commit']}"
        touched = await self._names(top, "diff", "--name-only", "-z", between)
        known = await self._names(top, "ls-tree", "-r", "--name-only", "-z", base)
        kept = await self._keep_edited(top, ours, touched, backup)
        await self._git(workspace, "reset", "--quiet", base)
        restored = [name for name in touched if name in known]
        if restored:
            await self._git(top, "checkout", "--quiet", "HEAD", "--", *restored)
        for name in touched - known:
            (top / name).unlink(missing_ok=True)
        return kept

    async def _keep_edited(
        self, top: Path, ours: list[str], touched: set[str], backup: Path
    ) -> list[KeptCopy]:
        """Copies of the files that stand as in none of the commits `ours`."""
        kept = []
        for index, name in enumerate(sorted(touched)):
            path = top / name
            if not path.is_file() or path.is_symlink():
                continue
            found = await self._git(top, "hash-object", "--", name)
            if found not in [await self._commit_of(f"{commit}:{name}") for commit in ours]:
                copy = backup / f"{index}.edited"
                write_atomic(copy, path.read_bytes())
                kept.append(kept_copy(name, copy))
        return kept

    async def _names(self, folder: Path, *args: str) -> set[str]:
        output = await self._git(folder, *args)
        return {name for name in output.split("\0") if name}

    async def _break_locks(self, journal: Path) -> None:
        """Remove the locks of a git that was killed while the merge of `journal` was under way."""
        workspace = self._project.workspace
        names = ["index.lock", "HEAD.lock"]
        with contextlib.suppress(GitFailed):
            names.append(f"{await self._git(workspace, 'symbolic-ref', 'HEAD')}.lock")
        for name in names:
            lock = workspace / await self._git(workspace, "rev-parse", "--git-path", name)
            # One that is older was there before our git began: it is somebody else's.
            if is_newer(lock, journal):
                lock.unlink(missing_ok=True)

    async def _forget_worktrees(self) -> None:
        """Drop our worktrees, also those that git had locked while it made them."""
        workspace = self._project.workspace
        ours = self._folder / "worktrees"
        for line in (await self._git(workspace, "worktree", "list", "--porcelain")).splitlines():
            path = Path(line.removeprefix("worktree "))
            if line.startswith("worktree ") and path.is_relative_to(ours):
                with contextlib.suppress(GitFailed):
                    await self._git(workspace, "worktree", "unlock", str(path))
        remove_tree(ours)
        await self._git(workspace, "worktree", "prune")

    def kept(self) -> list[KeptCopy]:
        kept, self._kept = self._kept, []
        return kept

    async def recover(self, is_committed: Callable[[str], bool]) -> dict[str, list[KeptCopy]]:
        undone = recover(self._folder / "backups", is_committed)
        try:
            await self._recover_merges(is_committed, undone)
        except NotReady:
            self._kept += [copy for copies in undone.values() for copy in copies]
            raise
        return undone

    async def _recover_merges(
        self, is_committed: Callable[[str], bool], undone: dict[str, list[KeptCopy]]
    ) -> None:
        """Take back half-done merges, into `undone`. Raises NotReady."""
        workspace = self._project.workspace
        backups = self._folder / "backups"
        try:
            self._prefix = await self._git(workspace, "rev-parse", "--show-prefix")
            await self._pin_branch()
            for journal in sorted(backups.glob(f"*/{MERGE}")):
                if is_committed(journal.parent.name):
                    journal.replace(journal.with_name("merged.json"))
                else:
                    await self._break_locks(journal)
                    undone[journal.parent.name] = await self._take_back(
                        journal.parent, crashed=True
                    )
            await self._forget_worktrees()
            dirty = await self._git(workspace, "status", "--porcelain", "--untracked-files=no")
        except GitFailed as error:
            raise NotReady(
                f"isolation worktree: the workspace must be a git tree: {error}"
            ) from None
        if dirty:
            raise NotReady(
                "isolation worktree: the workspace has uncommitted changes; commit or stash them"
            )
