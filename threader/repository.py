"""The git repository that a workspace is in, as a run uses it."""

from collections.abc import Callable
from pathlib import Path

from threader.git import GitFailed, PatientGit, git


class Repository:
    """Runs git in `workspace`, and in the worktrees that the run keeps in its `folder`.

    `tell` is called with the lock of another git that is waited for, and None when that is over.
    """

    def __init__(
        self, workspace: Path, folder: Path, lock_sec: float, tell: Callable[[str | None], None]
    ) -> None:
        self.workspace = workspace
        self._folder = folder
        self._patient = PatientGit(str(folder), lock_sec, tell)

    async def git(self, *args: str, at: Path | None = None) -> str:
        """The output of git in the workspace, or in the folder `at`.

        Raises GitFailed; NotReady when another git keeps its lock too long.
        """
        where = at or self.workspace
        if where.is_relative_to(self._folder):
            # Nobody but its worker works in a task's tree: a lock in there will never go.
            return await git(where, str(self._folder), *args)
        return await self._patient(where, *args)

    async def commit_of(self, name: str) -> str | None:
        """The object id of a revision, or None when there is no such revision."""
        try:
            return await self.git("rev-parse", "--verify", "-q", name)
        except GitFailed:
            return None

    async def names(self, *args: str, at: Path | None = None) -> set[str]:
        """The file names that git prints, separated by zero bytes (`-z`)."""
        output = await self.git(*args, at=at)
        return {name for name in output.split("\0") if name}
