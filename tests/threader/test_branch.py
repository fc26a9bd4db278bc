"""A run stays on the branch that it began on."""

import asyncio
from pathlib import Path

import pytest

from tests.threader.repositories import make_repository, run_git
from threader.branch import PinnedBranch
from threader.errors import NotReady


def test_a_run_is_refused_on_another_branch(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    branch = PinnedBranch(repository, tmp_path / "run")
    asyncio.run(branch.pin())
    run_git(repository.workspace, "checkout", "-q", "-b", "elsewhere")
    with pytest.raises(NotReady, match="merges into main, and the workspace is on elsewhere"):
        asyncio.run(branch.pin())
    run_git(repository.workspace, "checkout", "-q", "main")
    asyncio.run(branch.check())


def test_on_a_detached_head_what_is_built_on_the_pinned_commit_will_do(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    workspace = repository.workspace
    run_git(workspace, "checkout", "-q", "--detach")
    branch = PinnedBranch(repository, tmp_path / "run")
    asyncio.run(branch.pin())
    run_git(workspace, "commit", "-q", "--allow-empty", "-m", "on top")
    asyncio.run(branch.check())
    asyncio.run(branch.follow_merge())
    run_git(workspace, "checkout", "-q", "--detach", "HEAD~")
    with pytest.raises(NotReady, match="merges into a detached HEAD"):
        asyncio.run(branch.check())
