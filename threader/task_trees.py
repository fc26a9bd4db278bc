"""The git worktrees in which workers and the healer work, one for each."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from threader.branch import PinnedBranch
from threader.files import remove_tree
from threader.git import GitFailed
from threader.repository import Repository


class TaskTrees:
    """Creates, cleans and removes worktrees below the run's `folder`."""

    def __init__(self, repository: Repository, branch: PinnedBranch, folder: Path) -> None:
        self._repository = repository
        self._branch = branch
        self._folder = folder / "worktrees"
        self._managing = asyncio.Lock()

    def path(self, task_id: str) -> Path:
        return self._folder / task_id

    async def add(self, task_id: str) -> str:
        """A clean worktree for a task; returns the commit that it starts from."""
        tree = self.path(task_id)
        async with self._managing:
            await self._branch.check()
            base = await self._repository.git("rev-parse", "HEAD")
            await self._discard(tree)
            await self._repository.git("worktree", "add", "--detach", "-ff", str(tree), base)
        return base

    async def remove(self, task_id: str) -> None:
        async with self._managing:
            await self._discard(self.path(task_id))

    async def _discard(self, tree: Path) -> None:
        with suppress(GitFailed):
            await self._repository.git("worktree", "remove", "-ff", str(tree))
        remove_tree(tree)

    async def drop_edits(self, task_id: str, base: str) -> bool:
        """Undo what was edited, staged or committed since `base`; whether there was anything."""
        git, tree = self._repository.git, self.path(task_id)
        changed = await git("status", "--porcelain", at=tree)
        if not changed and await git("rev-parse", "HEAD", at=tree) == base:
            return False
        await git("checkout", "--quiet", "--force", "--detach", base, at=tree)
        await git("reset", "--hard", "--quiet", base, at=tree)
        await git("clean", "-fdq", at=tree)
        return True

    async def commit(self, task_id: str, names: Sequence[str], message: str) -> str | None:
        """Commit the files `names`, from the top of the tree; None when none of them changed."""
        git, tree = self._repository.git, self.path(task_id)
        if not names:
            return None
        await git("add", "--force", "--", *names, at=tree)
        if not await git("status", "--porcelain", "--untracked-files=no", at=tree):
            return None
        await git("commit", "--quiet", "-m", message, at=tree)
        return await git("rev-parse", "HEAD", at=tree)

    async def remove_all(self) -> None:
        """Remove the run's worktrees, also those that git had locked while it made them."""
        git = self._repository.git
        for line in (await git("worktree", "list", "--porcelain")).splitlines():
            path = Path(line.removeprefix("worktree "))
            if line.startswith("worktree ") and path.is_relative_to(self._folder):
                with suppress(GitFailed):
                    await git("worktree", "unlock", str(path))
        remove_tree(self._folder)
        await git("worktree", "prune")
