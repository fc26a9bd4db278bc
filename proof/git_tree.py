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
    `git_folder` is the repository's, which all its worktrees share; `changes` are the paths of the
    commit that have changed, and `added` those that it lacks."""

    folder: Path
    top: Path
    git_folder: Path
    commit: str
    tree: str
    changes: tuple[str, ...]
    added: tuple[str, ...] = ()

    @classmethod
    def at(cls, folder: Path) -> "GitTree":
        """Raises GitProblem outside of a checkout, where it has no commit, and where git is set to
        look at another folder."""
        top, git_folder = _git(
            folder, "rev-parse", "--show-toplevel", "--git-common-dir"
        ).splitlines()
        _check_top(folder.resolve(), Path(top))
        commit, tree = _git(folder, "rev-parse", "HEAD", "HEAD^{tree}").splitlines()
        changes, added = _changes(Path(top))
        git_folder_path = (folder / git_folder).resolve()
        return cls(folder.resolve(), Path(top), git_folder_path, commit, tree, changes, added)

    @property
    def is_dirty(self) -> bool:
        return bool(self.changes or self.added)

    def moved(self) -> str | None:
        """What has become another since, in one line: the commit, or files of it. Files that were
        added don't count: not every report or cache of a test run is ignored."""
        try:
            now = GitTree.at(self.folder)
        except GitProblem as problem:
            return str(problem)
        if now.commit != self.commit:
            return f"commit {now.commit[:12]} was checked out in place of {self.commit[:12]}"
        return f"files of the commit were changed: {_shown(now.changes)}" if now.changes else None

    def committed_at(self) -> int:
        """When the commit was made, by its committer's clock: seconds since 1970. Raises
        GitProblem."""
        return int(_git(self.top, "show", "--no-patch", "--format=%ct", self.commit))

    def shown_changes(self) -> str:
        """Some of the changes, for a sentence."""
        return _shown(self.changes + self.added)

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


def _shown(paths: tuple[str, ...]) -> str:
    more = len(paths) - CHANGES_SHOWN
    shown = ", ".join(paths[:CHANGES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _check_top(folder: Path, top: Path) -> None:
    """Raises GitProblem unless `top` is where the checkout around the folder begins: core.worktree
    may name another folder."""
    around = next((at for at in (folder, *folder.parents) if (at / ".git").exists()), None)
    if around != top.resolve():
        raise GitProblem(
            f"git takes {top} for the working tree, and not {around or folder}: undo core.worktree "
            "(`git config --show-origin --get-all core.worktree`)"
        )


def _changes(top: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths of HEAD that have changed in a checkout, and those that HEAD lacks.

    Each file is read and compared with HEAD by an index of its own: that of the checkout can be
    told not to look (assume-unchanged, skip-worktree, sparse checkouts, a file system monitor)."""
    with tempfile.TemporaryDirectory(prefix="cacp-index-") as place:
        index = {"GIT_INDEX_FILE": str(Path(place) / "index")}
        _git(top, *_LOOK, "read-tree", "HEAD", **index)
        # Porcelain v1 with -z: two letters, a space and the path.
        look = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")
        status = _git(top, *_LOOK, *look, "--ignore-submodules=none", **index).split("\0")
    # What was staged counts too, and may be ignored.
    staged = ("diff-index", "--cached", "--name-only", "-z", "--no-renames", "HEAD")
    changed = {entry[3:] for entry in status if entry and not entry.startswith("?")}
    changed |= set(_git(top, *_LOOK, *staged).split("\0")) - {""}
    added = {entry[3:] for entry in status if entry.startswith("?")} - changed
    return tuple(sorted(changed)), tuple(sorted(added))


_LOOK = tuple(
    word
    for setting in (
        "core.fsmonitor=false",
        "core.untrackedCache=false",
        "core.splitIndex=false",
        f"core.hooksPath={os.devnull}",
    )
    for word in ("-c", setting)
)
"""Settings of a look at a checkout: nothing of its own runs, or says that nothing has changed."""


def clean_environment() -> dict[str, str]:
    """This process's environment without what git sets for its hooks, which names one checkout."""
    return {name: value for name, value in os.environ.items() if name not in _OF_ONE_CHECKOUT}


_OF_ONE_CHECKOUT = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_REPLACE_REF_BASE",
    }
)


OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Keep git from fetching what a partial clone lacks: the first of git 2.45, the second of all."""


_PLAIN = {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}


def _git(folder: Path, *words: str, **environment: str) -> str:
    """What a git command prints. Objects are what their hashes say (`git replace` is left out).
    Raises GitProblem."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            check=False,
            text=True,
            errors="surrogateescape",
            env=clean_environment() | _PLAIN | environment,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise GitProblem("git is not installed here: a receipt names a commit") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["git failed"]
        fatal = [line for line in lines if line.startswith("fatal: ")] or lines
        raise GitProblem(fatal[0].removeprefix("fatal: ").strip())
    return done.stdout.rstrip("\n")
