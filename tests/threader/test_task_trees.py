"""The worktrees of a run's tasks."""

import asyncio
from pathlib import Path

from tests.threader.repositories import make_repository, run_git
from threader.branch import PinnedBranch
from threader.task_trees import TaskTrees


def make_trees(tmp_path: Path) -> TaskTrees:
    repository = make_repository(tmp_path)
    branch = PinnedBranch(repository, tmp_path / "run")
    asyncio.run(branch.pin())
    return TaskTrees(repository, branch, tmp_path / "run")


def test_direct_edits_are_dropped_and_named_files_committed(tmp_path: Path) -> None:
    trees = make_trees(tmp_path)
    base = asyncio.run(trees.add("A"))
    tree = trees.path("A")
    assert not asyncio.run(trees.drop_edits("A", base))
    (tree / "base.txt").write_text("edited")
    (tree / "stray.txt").write_text("stray")
    run_git(tree, "commit", "-qam", "by itself")
    assert asyncio.run(trees.drop_edits("A", base))
    assert [path.name for path in tree.glob("*.txt")] == ["base.txt"]
    assert (tree / "base.txt").read_text() == "base\n"
    (tree / "a.txt").write_text("a")
    commit = asyncio.run(trees.commit("A", ["a.txt"], "A: done"))
    assert commit == run_git(tree, "rev-parse", "HEAD")
    assert asyncio.run(trees.commit("A", ["a.txt"], "A: again")) is None
    assert asyncio.run(trees.commit("A", [], "A: nothing")) is None


def test_trees_that_a_crash_left_are_removed(tmp_path: Path) -> None:
    trees = make_trees(tmp_path)
    for task_id in ("A", "B"):
        asyncio.run(trees.add(task_id))
    run_git(tmp_path / "work", "worktree", "lock", str(trees.path("A")))
    asyncio.run(trees.remove("B"))
    assert not trees.path("B").exists()
    asyncio.run(trees.remove_all())
    assert not trees.path("A").exists()
    assert run_git(tmp_path / "work", "worktree", "list").count("\n") == 0
