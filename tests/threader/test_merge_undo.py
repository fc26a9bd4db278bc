"""Merges that are taken back. What people do meanwhile is in test_worktree.py."""

import asyncio
import os
from pathlib import Path

from tests.threader.repositories import make_repository, run_git
from threader.branch import PinnedBranch
from threader.merge_undo import MERGE, MergeJournal, MergeUndo


def make_merge(tmp_path: Path) -> tuple[MergeUndo, MergeJournal]:
    """A workspace into which a commit that changes base.txt and adds new.txt was merged."""
    repository = make_repository(tmp_path)
    workspace = repository.workspace
    branch = PinnedBranch(repository, tmp_path / "run")
    asyncio.run(branch.pin())
    head = run_git(workspace, "rev-parse", "HEAD")
    run_git(workspace, "checkout", "-q", "-b", "task")
    (workspace / "base.txt").write_text("task\n")
    (workspace / "new.txt").write_text("task\n")
    run_git(workspace, "add", ".")
    run_git(workspace, "commit", "-qm", "task")
    commit = run_git(workspace, "rev-parse", "HEAD")
    run_git(workspace, "checkout", "-q", "main")
    backup = tmp_path / "run" / "backups" / "A.1"
    backup.mkdir(parents=True)
    journal = MergeJournal(backup, head, commit)
    journal.write()
    run_git(workspace, "merge", "-q", "--no-ff", "-m", "Merge", "task")
    return MergeUndo(repository, branch), journal


def test_a_merge_is_found_and_taken_back_with_its_files(tmp_path: Path) -> None:
    undo, journal = make_merge(tmp_path)
    workspace = tmp_path / "work"
    assert MergeJournal.read(journal.backup) == journal
    assert asyncio.run(undo.merge_of(journal)) == run_git(workspace, "rev-parse", "HEAD")
    assert asyncio.run(undo.take_back(journal.backup)) == []
    assert run_git(workspace, "rev-parse", "HEAD") == journal.head
    assert (workspace / "base.txt").read_text() == "base\n"
    assert not (workspace / "new.txt").exists()
    assert [path.name for path in journal.backup.iterdir()] == ["taken_back.json"]


def test_a_commit_on_top_of_the_merge_stays(tmp_path: Path) -> None:
    undo, journal = make_merge(tmp_path)
    workspace = tmp_path / "work"
    (workspace / "other.txt").write_text("a person's\n")
    run_git(workspace, "add", ".")
    run_git(workspace, "commit", "-qm", "a person's")
    asyncio.run(undo.take_back(journal.backup))
    assert (workspace / "other.txt").exists()
    assert not (workspace / "new.txt").exists()


def test_a_file_that_somebody_edited_is_kept_as_a_copy(tmp_path: Path) -> None:
    undo, journal = make_merge(tmp_path)
    (tmp_path / "work" / "base.txt").write_text("a person's\n")
    (copy,) = asyncio.run(undo.take_back(journal.backup))
    assert copy.path == "base.txt"
    assert (journal.backup / "0.edited").read_text() == "a person's\n"


def test_only_locks_of_the_killed_git_are_removed(tmp_path: Path) -> None:
    undo, journal = make_merge(tmp_path)
    git_folder = tmp_path / "work" / ".git"
    for name in ("index.lock", "HEAD.lock"):
        (git_folder / name).touch()
    os.utime(git_folder / "HEAD.lock", (1, 1))
    asyncio.run(undo.break_locks(journal.backup / MERGE))
    assert not (git_folder / "index.lock").exists()
    assert (git_folder / "HEAD.lock").exists(), "it is older than the merge"
