"""Small git repositories for the tests of `isolation: worktree`."""

import subprocess
from pathlib import Path

from threader.repository import Repository


def run_git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    return subprocess.run(
        ["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def make_repository(root: Path) -> Repository:
    """A workspace with one commit of the file base.txt."""
    workspace, folder = root / "work", root / "run"
    workspace.mkdir()
    folder.mkdir()
    run_git(workspace, "init", "-q", "-b", "main")
    (workspace / "base.txt").write_text("base\n")
    run_git(workspace, "add", ".")
    run_git(workspace, "commit", "-qm", "base")
    return Repository(workspace, folder, 0.1, lambda _: None)
