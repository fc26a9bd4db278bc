"""Keeps a run on the branch that it began on (`isolation: worktree`)."""

import shlex
from contextlib import suppress
from pathlib import Path

from threader.errors import NotReady
from threader.files import write_atomic
from threader.git import GitFailed
from threader.repository import Repository

BRANCH = "branch"
"""The file that names the branch, whatever is checked out later."""
DETACHED = "a detached HEAD at "
"""Precedes a commit when HEAD is detached."""


class PinnedBranch:
    """The branch that a run merges into.

    On a detached HEAD, it is whatever is built on the commit that the run began on.
    """

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._repository = repository
        self._path = folder / BRANCH

    async def pin(self) -> None:
        """Pin the current branch, unless the run has one. Raises NotReady on another branch."""
        if not self._path.exists():
            await self._write()
        await self.check()

    async def _write(self) -> None:
        write_atomic(self._path, (await self._current()).encode())

    async def follow_merge(self) -> None:
        """On a detached HEAD, pin the merge: no branch points to it."""
        if self._path.read_text().startswith(DETACHED):
            with suppress(GitFailed):
                await self._write()

    async def check(self) -> None:
        """Raises NotReady when the workspace is on another branch."""
        pinned, current = self._path.read_text(), await self._current()
        if current == pinned:
            return
        commit = pinned.removeprefix(DETACHED)
        detached = commit != pinned
        if detached and current.startswith(DETACHED) and await self._is_built_on(commit):
            return
        where = ["--detach", commit] if detached else [pinned]
        workspace = str(self._repository.workspace)
        back = shlex.join(["git", "-C", workspace, "checkout", *where])
        raise NotReady(
            f"isolation worktree: this run merges into {pinned}, and the workspace is on "
            f"{current}; `{back}` and resume"
        )

    async def _current(self) -> str:
        try:
            return await self._repository.git("symbolic-ref", "--short", "HEAD")
        except GitFailed:
            return DETACHED + await self._repository.git("rev-parse", "HEAD")

    async def _is_built_on(self, commit: str) -> bool:
        try:
            await self._repository.git("merge-base", "--is-ancestor", commit, "HEAD")
        except GitFailed:
            return False
        return True
