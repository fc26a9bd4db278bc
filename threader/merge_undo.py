"""Takes a merge back, whatever a crash or other users of the repository made of it."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from schemas.run_state import KeptCopy
from threader.branch import PinnedBranch
from threader.errors import NotReady
from threader.files import is_newer, write_atomic
from threader.git import GitFailed
from threader.repository import Repository
from threader.transaction import kept_copy

MERGE = "merge.json"
"""The journal's name while the merge is under way."""


@dataclass(frozen=True)
class MergeJournal:
    """On disk in an attempt's `backup` folder: `commit` is being merged into `head`."""

    backup: Path
    head: str
    commit: str

    @staticmethod
    def read(backup: Path) -> "MergeJournal":
        journal = orjson.loads((backup / MERGE).read_bytes())
        return MergeJournal(backup, journal["head"], journal["commit"])

    def write(self) -> None:
        journal = {"head": self.head, "commit": self.commit}
        write_atomic(self.backup / MERGE, orjson.dumps(journal))

    def close(self, *, merged: bool) -> None:
        name = "merged.json" if merged else "taken_back.json"
        (self.backup / MERGE).replace(self.backup / name)


class MergeUndo:
    """Finds the merges of a run and undoes them. Other files and commits stay as they are."""

    def __init__(self, repository: Repository, branch: PinnedBranch) -> None:
        self._repository = repository
        self._branch = branch

    async def merge_of(self, journal: MergeJournal) -> str | None:
        """The merge commit, whoever committed before or after it; None when there is none."""
        since = f"{journal.head}..HEAD"
        output = await self._repository.git("rev-list", "--merges", "--parents", since)
        rows = (line.split() for line in output.splitlines())
        return next((row[0] for row in rows if journal.commit in row[2:]), None)

    async def take_back(self, backup: Path, *, crashed: bool = False) -> list[KeptCopy]:
        """Restore the branch and the merged files as they were before the merge.

        Returns copies of the merged files that somebody has edited since. A merge that git refused
        has changed nothing, unless git itself `crashed`. Raises NotReady when git cannot do it.
        """
        await self._branch.check()
        journal = MergeJournal.read(backup)
        try:
            kept = await self._take_back(journal, crashed=crashed)
        except GitFailed as error:
            raise NotReady(
                f"cannot take back the merge of {backup.name}: {error}; bring the workspace to "
                f"{journal.head[:12]}, or revert the merge there, and resume"
            ) from None
        journal.close(merged=False)
        return kept

    async def _take_back(self, journal: MergeJournal, *, crashed: bool) -> list[KeptCopy]:
        commit_of = self._repository.commit_of
        if await commit_of("MERGE_HEAD") == journal.commit:
            try:
                await self._repository.git("merge", "--abort")
            except GitFailed:
                # Somebody committed while git merged: its index is older than HEAD.
                crashed = True
        merge = await self.merge_of(journal)
        if merge is not None and merge != await commit_of("HEAD"):
            await self._revert(merge)
            return []
        if merge is not None:
            return await self._restore(journal, f"{merge}^1", [merge])
        if crashed:
            return await self._restore(journal, "HEAD", ["HEAD", journal.commit])
        return []

    async def _revert(self, merge: str) -> None:
        """Undo a merge that has commits on top. Raises GitFailed when a person has to do it."""
        git, commit_of = self._repository.git, self._repository.commit_of
        try:
            await git("revert", "--no-edit", "-m", "1", merge)
        except GitFailed:
            if await commit_of("REVERT_HEAD") != merge:
                # Somebody has reverted it already, or has edits of their own in its files.
                diff = ("diff", "--name-only", "-z", f"{merge}^1", "HEAD")
                if await self._repository.names(*diff):
                    raise
                return
            await git("revert", "--abort")
            raise GitFailed("somebody has committed on top of it") from None

    async def _restore(
        self, journal: MergeJournal, base: str, run_commits: list[str]
    ) -> list[KeptCopy]:
        """Set the branch and the merged files to `base`; returns copies of edited files."""
        git, names = self._repository.git, self._repository.names
        top = Path(await git("rev-parse", "--show-toplevel"))
        between = f"{journal.head}...{journal.commit}"
        touched = await names("diff", "--name-only", "-z", between, at=top)
        known = await names("ls-tree", "-r", "--name-only", "-z", base, at=top)
        kept = await self._keep_edited(top, run_commits, touched, journal.backup)
        await git("reset", "--quiet", base)
        restored = [name for name in touched if name in known]
        if restored:
            await git("checkout", "--quiet", "HEAD", "--", *restored, at=top)
        for name in touched - known:
            (top / name).unlink(missing_ok=True)
        return kept

    async def _keep_edited(
        self, top: Path, run_commits: list[str], touched: set[str], backup: Path
    ) -> list[KeptCopy]:
        """Copy the files that differ from each of `run_commits`: somebody else has edited them."""
        kept = []
        for index, name in enumerate(sorted(touched)):
            path = top / name
            if not path.is_file() or path.is_symlink():
                continue
            current = await self._repository.git("hash-object", "--", name, at=top)
            written = [await self._repository.commit_of(f"{item}:{name}") for item in run_commits]
            if current not in written:
                copy = backup / f"{index}.edited"
                write_atomic(copy, path.read_bytes())
                kept.append(kept_copy(name, copy))
        return kept

    async def break_locks(self, journal: Path) -> None:
        """Remove the locks of a git that was killed during the merge of the journal file."""
        git, workspace = self._repository.git, self._repository.workspace
        names = ["index.lock", "HEAD.lock"]
        with suppress(GitFailed):
            names.append(f"{await git('symbolic-ref', 'HEAD')}.lock")
        for name in names:
            lock = workspace / await git("rev-parse", "--git-path", name)
            # An older one predates our git: another process owns it.
            if is_newer(lock, journal):
                lock.unlink(missing_ok=True)
