"""git that another git stands in the way of."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.support.waiting import until
from threader.errors import NotReady
from threader.git import GitFailed, GitLocked, PatientGit, git


def sh(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *args],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str = "") -> None:
    (folder / name).write_text(text or name)
    sh(folder, "add", ".")
    sh(folder, "commit", "-qm", name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two branches that merge: `main` and `task`."""
    folder = tmp_path / "r"
    folder.mkdir()
    sh(folder, "init", "-q", "-b", "main")
    commit(folder, "base")
    sh(folder, "checkout", "-q", "-b", "task")
    commit(folder, "theirs")
    sh(folder, "checkout", "-q", "main")
    commit(folder, "ours")
    return folder


def test_what_git_says(repository: Path) -> None:
    assert asyncio.run(git(repository, "m", "rev-parse", "--show-prefix")) == ""
    with pytest.raises(GitFailed, match="not a valid ref"):
        asyncio.run(git(repository, "m", "show-ref", "--verify", "refs/heads/none"))


def test_a_merge_over_somebodys_files_names_them(repository: Path) -> None:
    (repository / "theirs").write_text("mine")
    with pytest.raises(GitFailed, match=r"untracked .* overwritten by merge: theirs$"):
        asyncio.run(git(repository, "m", "merge", "--no-edit", "task"))
    (repository / "theirs").unlink()
    sh(repository, "checkout", "-q", "task")
    commit(repository, "base", "changed")
    sh(repository, "checkout", "-q", "main")
    (repository / "base").write_text("mine")
    with pytest.raises(GitFailed, match=r"local changes .* overwritten by merge: base$"):
        asyncio.run(git(repository, "m", "merge", "--no-edit", "task"))


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_merge_waits_for_the_lock_of_another(repository: Path, lock: str) -> None:
    held = repository / ".git" / lock
    held.touch()
    task = sh(repository, "rev-parse", "task")
    told: list[str | None] = []

    async def main() -> None:
        patient = PatientGit("m", 600, told.append)
        merging = asyncio.create_task(patient(repository, "merge", "--no-ff", "--no-edit", task))
        await until(lambda: told)
        held.unlink()
        await merging

    asyncio.run(main())
    assert sh(repository, "log", "-1", "--format=%s") == f"Merge commit '{task}'"
    assert sh(repository, "status", "--porcelain") == ""
    assert told == [
        f"another git holds {held.name}; waiting up to 600 s for it",
        None,
    ]


def test_a_lock_that_stays_is_named(repository: Path) -> None:
    (repository / ".git" / "index.lock").touch()
    with pytest.raises(GitLocked):
        asyncio.run(git(repository, "m", "reset", "-q"))
    told: list[str | None] = []
    patient = PatientGit("m", 0.1, told.append)
    with pytest.raises(NotReady, match=r"has held index\.lock for 0 s; end it, or remove"):
        asyncio.run(patient(repository, "reset", "-q"))
    assert told[-1] is None, "nothing is waited for any more"


def test_a_conflict_is_no_lock(repository: Path) -> None:
    commit(repository, "base", "ours")
    sh(repository, "checkout", "-q", "task")
    commit(repository, "base", "theirs")
    sh(repository, "checkout", "-q", "main")
    with pytest.raises(GitFailed, match="Automatic merge failed"):
        asyncio.run(PatientGit("m", 600)(repository, "merge", "--no-edit", "task"))
