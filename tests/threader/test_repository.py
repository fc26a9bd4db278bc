"""The git repository of a workspace."""

import asyncio
from pathlib import Path

import pytest

from tests.threader.repositories import make_repository, run_git
from threader.errors import NotReady
from threader.git import GitLocked


def test_a_revision_is_a_commit_or_none(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    head = run_git(repository.workspace, "rev-parse", "HEAD")
    assert asyncio.run(repository.commit_of("HEAD")) == head
    assert asyncio.run(repository.commit_of("nowhere")) is None


def test_names_may_hold_anything_but_zero_bytes(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    (repository.workspace / "a b\nc").write_text("x")
    run_git(repository.workspace, "add", ".")
    names = repository.names("ls-files", "-z")
    assert asyncio.run(names) == {"base.txt", "a b\nc"}


def test_a_lock_is_waited_for_in_the_workspace_only(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    tree = tmp_path / "run" / "worktrees" / "A"
    run_git(repository.workspace, "worktree", "add", "-q", "--detach", str(tree))
    git_folder = repository.workspace / ".git"
    (git_folder / "index.lock").touch()
    (git_folder / "worktrees" / "A" / "index.lock").touch()
    with pytest.raises(NotReady, match=r"has held index\.lock"):
        asyncio.run(repository.git("add", "."))
    with pytest.raises(GitLocked):
        asyncio.run(repository.git("add", ".", at=tree))
