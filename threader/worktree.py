"""One git worktree per task, merged back in order and verified again (`isolation: worktree`).

Workers and their verification run beside each other, each in its own tree. What a worker edits
there by itself is discarded: only `writes[]` count (§8). Merges happen one at a time, in the order
in which the attempts started.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from schemas.v2 import FailureClass
from threader.errors import NotReady
from threader.files import remove_tree, write_atomic
from threader.landing import (
    Book,
    Cargo,
    Landing,
    SiteFailed,
    apply_and_verify,
    make_check,
    protected_patterns,
)
from threader.load import Project
from threader.outcome import Failure
from threader.process import MARKER
from threader.signatures import one_line
from threader.transaction import Transaction, recover
from threader.verify import Check, verify
from threader.writes import WriteRules

MERGE = "merge.json"
_QUIET = (
    "--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false",
    "-c", "user.name=cacp thread", "-c", "user.email=cacp-thread@localhost",
)  # fmt: skip

_FOREIGN = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"})
"""Set where a git hook started us: they would send every command to another tree."""


class GitFailed(SiteFailed):
    """git said no; its last line."""


async def git(folder: Path, marker: str, *args: str) -> str:
    """Run git in `folder`; returns its output. Raises GitFailed with its last words."""
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    # A worktree whose .git a worker removed must not pass for a folder of the repository around it.
    ceiling = f"{marker}/worktrees"
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": ceiling, "LC_ALL": "C"}
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *_QUIET, *args, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True, env={**env, MARKER: marker},
        )  # fmt: skip
    except FileNotFoundError:
        raise GitFailed("git cannot be started") from None
    talk = asyncio.ensure_future(process.communicate())
    try:
        output, _ = await asyncio.shield(talk)
    except asyncio.CancelledError:
        # A git that was left alone would go on beside whatever undoes it.
        await talk
        raise
    text = output.decode("utf-8", "replace").strip()
    if process.returncode:
        raise GitFailed(text.splitlines()[-1] if text else f"git {args[0]} failed")
    return text


@dataclass
class _Turn:
    base: str
    """The commit that the worktree starts from."""
    before: asyncio.Event | None
    done: asyncio.Event


class WorktreeSite:
    def __init__(self, project: Project, folder: Path) -> None:
        self._project = project
        self._folder = folder
        self._merging = asyncio.Lock()
        self._managing = asyncio.Lock()
        self._protected = protected_patterns(project)
        self._turns: dict[str, _Turn] = {}
        self._last: asyncio.Event | None = None
        self._prefix = ""

    async def _git(self, folder: Path, *args: str) -> str:
        return await git(folder, str(self._folder), *args)

    def _tree(self, task_id: str) -> Path:
        return self._folder / "worktrees" / task_id

    async def prepare(self, task_id: str) -> Path:
        workspace = self._project.workspace
        turn = _Turn("", self._last, asyncio.Event())
        self._turns[task_id], self._last = turn, turn.done
        tree = self._tree(task_id)
        async with self._managing:
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
        notes = await self._drop_direct_edits(tree, self._turns[cargo.task.id].base)
        rules = WriteRules(place, cargo.staging, self._protected, cargo.task.allow_shrink)
        transaction = Transaction(place, tree.with_name(f"@{tree.name}"))
        check = make_check(self._project, self._folder, place, cargo)
        landing = await apply_and_verify(cargo, rules, transaction, check, lambda _: None)
        remove_tree(transaction.folder)
        landing.notes += notes
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

    async def _drop_direct_edits(self, tree: Path, base: str) -> list[str]:
        """Undo what the worker edited, staged or committed in its tree."""
        changed = await self._git(tree, "status", "--porcelain")
        if not changed and await self._git(tree, "rev-parse", "HEAD") == base:
            return []
        await self._git(tree, "checkout", "--quiet", "--force", "--detach", base)
        await self._git(tree, "reset", "--hard", "--quiet", base)
        await self._git(tree, "clean", "-fdq")
        return ["the worker edited files by itself; only its writes[] count"]

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
        head = await self._git(workspace, "rev-parse", "HEAD")
        write_atomic(backup / MERGE, orjson.dumps({"head": head, "commit": commit}))
        try:
            landing.failure = await self._merge_and_verify(commit, cargo, check)
        except asyncio.CancelledError:
            await asyncio.shield(self._take_back(backup))
            raise
        if landing.failure is not None:
            await self._take_back(backup)
            landing.rolled_back = True
            book(landing)
            return
        book(landing)
        (backup / MERGE).replace(backup / "merged.json")

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

    async def _take_back(self, backup: Path) -> None:
        """The branch and the merged files as they were before the merge, whatever state it is in.

        Other files are left alone. Raises NotReady when git cannot do it.
        """
        journal = orjson.loads((backup / MERGE).read_bytes())
        head, commit = journal["head"], journal["commit"]
        workspace = self._project.workspace
        with contextlib.suppress(GitFailed):
            await self._git(workspace, "merge", "--abort")
        try:
            await self._git(workspace, "reset", "--quiet", head)
            top = Path(await self._git(workspace, "rev-parse", "--show-toplevel"))
            touched = await self._names(top, "diff", "--name-only", "-z", f"{head}...{commit}")
            known = await self._names(top, "ls-tree", "-r", "--name-only", "-z", head)
            restored = [name for name in touched if name in known]
            if restored:
                await self._git(top, "checkout", "--quiet", head, "--", *restored)
        except GitFailed as error:
            raise NotReady(
                f"cannot take back the merge of {backup.name}: {error}; bring the workspace to "
                f"{head[:12]} and resume"
            ) from None
        for name in touched - known:
            (top / name).unlink(missing_ok=True)
        (backup / MERGE).replace(backup / "taken_back.json")

    async def _names(self, folder: Path, *args: str) -> set[str]:
        output = await self._git(folder, *args)
        return {name for name in output.split("\0") if name}

    async def _break_locks(self) -> None:
        """Remove the locks of a git that was killed while our merge was under way."""
        workspace = self._project.workspace
        names = ["index.lock", "HEAD.lock"]
        with contextlib.suppress(GitFailed):
            names.append(f"{await self._git(workspace, 'symbolic-ref', 'HEAD')}.lock")
        for name in names:
            lock = await self._git(workspace, "rev-parse", "--git-path", name)
            (workspace / lock).unlink(missing_ok=True)

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

    async def recover(self, is_committed: Callable[[str], bool]) -> list[str]:
        workspace = self._project.workspace
        backups = self._folder / "backups"
        undone = recover(backups, is_committed)
        try:
            self._prefix = await self._git(workspace, "rev-parse", "--show-prefix")
            for journal in sorted(backups.glob(f"*/{MERGE}")):
                if is_committed(journal.parent.name):
                    journal.replace(journal.with_name("merged.json"))
                else:
                    await self._break_locks()
                    await self._take_back(journal.parent)
                    undone.append(journal.parent.name)
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
        return undone
