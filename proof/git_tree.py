"""The git checkout that is verified: its commit, whether it is clean, and the commit that it is
based on."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAIN_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Where the base is sought, in this order, as far as the checkout has them."""
CHANGES_SHOWN = 5


class GitProblem(Exception):
    """Why a folder can't be verified; one line."""


@dataclass(frozen=True, slots=True)
class GitTree:
    """A checkout as it is now. `folder` is the one inside it in which the command runs;
    `git_folder` is the repository's, which all its worktrees share; `changes` are the paths that
    the commit lacks."""

    folder: Path
    top: Path
    git_folder: Path
    commit: str
    tree: str
    changes: tuple[str, ...]

    @classmethod
    def at(cls, folder: Path) -> "GitTree":
        """Raises GitProblem outside of a checkout, and where it has no commit."""
        top, git_folder = _git(
            folder, "rev-parse", "--show-toplevel", "--git-common-dir"
        ).splitlines()
        commit, tree = _git(folder, "rev-parse", "HEAD", "HEAD^{tree}").splitlines()
        # Porcelain v1 with -z: two letters, a space and the path; of a renamed file two paths.
        status = _git(Path(top), "status", "--porcelain", "--untracked-files=normal", "-z")
        changes = tuple(entry[3:] for entry in status.split("\0") if entry[2:3] == " ")
        return cls(
            folder.resolve(), Path(top), (folder / git_folder).resolve(), commit, tree, changes
        )

    @property
    def is_dirty(self) -> bool:
        return bool(self.changes)

    def committed_at(self) -> int:
        """When the commit was made, by its committer's clock: seconds since 1970. Raises
        GitProblem."""
        return int(_git(self.top, "show", "--no-patch", "--format=%ct", self.commit))

    def shown_changes(self) -> str:
        """Some of the changes, for a sentence."""
        more = len(self.changes) - CHANGES_SHOWN
        shown = ", ".join(self.changes[:CHANGES_SHOWN])
        return f"{shown} and {more} more" if more > 0 else shown

    def base(self, named: str | None = None) -> str | None:
        """The commit that this one is based on: of the branch `named`, else of the main branch,
        where the two have parted; on that branch itself the commit before. None where there is
        none. Raises GitProblem for a branch or commit that is not there."""
        if named is not None:
            return self._parted(_git(self.top, "rev-parse", "--verify", f"{named}^{{commit}}"))
        for branch in MAIN_BRANCHES:
            try:
                other = _git(self.top, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
                return self._parted(other)
            except GitProblem:
                continue
        return self._before()

    def _parted(self, other: str) -> str | None:
        parted = _git(self.top, "merge-base", "HEAD", other)
        return self._before() if parted == self.commit else parted

    def _before(self) -> str | None:
        try:
            return _git(self.top, "rev-parse", "--verify", "--quiet", "HEAD^")
        except GitProblem:
            return None

    def has(self, commit: str) -> bool:
        """Whether the repository has a commit, by its whole hash. Nothing is fetched."""
        try:
            _git(self.top, "cat-file", "-e", f"{commit}^{{commit}}", **OFFLINE)
        except GitProblem:
            return False
        return True

    @contextmanager
    def worktree(self, commit: str, *, fetches: bool = True) -> Iterator[Path]:
        """The same folder in a temporary worktree at another commit. No hook is run: one of that
        commit is not this checkout's. Unless it `fetches`, a partial clone lacks what it lacks.
        Raises GitProblem."""
        with tempfile.TemporaryDirectory(prefix="cacp-base-", ignore_cleanup_errors=True) as at:
            place = Path(at) / self.top.name
            add = ("-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--detach", str(place))
            _git(self.top, *add, commit, **{} if fetches else OFFLINE)
            try:
                inside = place / self.folder.relative_to(self.top.resolve())
                if not inside.is_dir():
                    raise GitProblem(f"commit {commit[:12]} has no such folder")
                yield inside
            finally:
                _git(self.top, "worktree", "remove", "--force", str(place))


def clean_environment() -> dict[str, str]:
    """This process's environment without what git sets for its hooks, which names one checkout."""
    return {name: value for name, value in os.environ.items() if name not in _OF_ONE_CHECKOUT}


_OF_ONE_CHECKOUT = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"}
)


OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Keep git from fetching what a partial clone lacks: the first of git 2.45, the second of all."""


def _git(folder: Path, *words: str, **environment: str) -> str:
    """What a git command prints. Raises GitProblem."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            check=False,
            text=True,
            errors="surrogateescape",
            env=clean_environment() | {"LC_ALL": "C"} | environment,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise GitProblem("git is not installed here: a receipt names a commit") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["git failed"]
        fatal = [line for line in lines if line.startswith("fatal: ")] or lines
        raise GitProblem(fatal[0].removeprefix("fatal: ").strip())
    return done.stdout.rstrip("\n")
