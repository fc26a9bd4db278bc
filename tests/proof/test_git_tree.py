"""What is read of a git checkout, on real repositories."""

import os
import time
from pathlib import Path

import pytest

from proof.git_tree import GitProblem, GitTree, clean_environment
from tests.proof.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "api")


def test_a_clean_checkout(checkout: Checkout) -> None:
    commit = checkout.commit(a_txt="1")
    tree = GitTree.at(checkout.folder)
    assert (tree.commit, tree.changes, tree.is_dirty) == (commit, (), False)
    assert tree.tree == checkout.git("rev-parse", "HEAD^{tree}")
    assert tree.git_folder == checkout.folder / ".git"
    assert tree.top == tree.folder == checkout.folder


@pytest.mark.parametrize("change", ["edited", "staged", "deleted", "untracked", "renamed"])
def test_whatever_the_commit_lacks_makes_it_dirty(checkout: Checkout, change: str) -> None:
    checkout.commit(a_txt="1\n2\n3\n", b_txt="2")
    if change == "edited":
        checkout.write("a.txt", "other")
    elif change == "staged":
        checkout.write("a.txt", "other")
        checkout.git("add", "a.txt")
    elif change == "deleted":
        (checkout.folder / "a.txt").unlink()
    elif change == "untracked":
        checkout.write("a.txt ", "new")
    else:
        checkout.git("mv", "a.txt", "c.txt")
    tree = GitTree.at(checkout.folder)
    added = {"untracked": ("a.txt ",), "renamed": ("c.txt",)}.get(change, ())
    changes = {"untracked": (), "renamed": ("a.txt", "c.txt")}.get(change, ("a.txt",))
    assert (tree.changes, tree.is_dirty) == (changes, True)
    assert set(tree.added) <= set(added)


def test_what_git_ignores_is_no_change(checkout: Checkout) -> None:
    checkout.write(".gitignore", "build/\n")
    checkout.commit()
    checkout.write("build/out", "x")
    assert not GitTree.at(checkout.folder).is_dirty


def test_what_is_staged_is_a_change_also_where_git_ignores_it(checkout: Checkout) -> None:
    checkout.write(".gitignore", "local.py\n")
    checkout.commit()
    checkout.write("local.py", "x")
    assert not GitTree.at(checkout.folder).is_dirty
    checkout.git("add", "--force", "local.py")
    assert GitTree.at(checkout.folder).changes == ("local.py",)


HIDDEN = {
    "assume unchanged": [("update-index", "--assume-unchanged", "a.txt")],
    "skip worktree": [("update-index", "--skip-worktree", "a.txt")],
    "a monitor that sees nothing": [
        ("config", "core.fsmonitor", "true"),
        ("update-index", "--fsmonitor-valid", "a.txt"),
    ],
    "no untracked files": [("config", "status.showUntrackedFiles", "no")],
    "nothing is refreshed": [("config", "core.ignoreStat", "true"), ("reset", "-q", "--hard")],
}


@pytest.mark.parametrize("steps", HIDDEN.values(), ids=HIDDEN)
def test_no_flag_or_setting_hides_a_change(
    checkout: Checkout, steps: list[tuple[str, ...]]
) -> None:
    checkout.commit(a_txt="1", b_txt="1")
    for step in steps:
        checkout.git(*step)
    assert not GitTree.at(checkout.folder).is_dirty
    checkout.write("a.txt", "2")
    checkout.write("new.txt", "2")
    before = (checkout.folder / ".git" / "index").read_bytes()
    tree = GitTree.at(checkout.folder)
    assert (tree.changes, tree.added) == (("a.txt",), ("new.txt",))
    assert (checkout.folder / ".git" / "index").read_bytes() == before, "it changes nothing"


def test_a_file_that_a_sparse_checkout_lacks_is_a_change(checkout: Checkout) -> None:
    checkout.write("in/a.txt", "1")
    checkout.write("out/b.txt", "1")
    checkout.commit()
    checkout.git("sparse-checkout", "set", "in")
    assert GitTree.at(checkout.folder).changes == ("out/b.txt",)


def test_a_same_size_and_time_hide_nothing(checkout: Checkout) -> None:
    checkout.commit(a_txt="1")
    checkout.git("config", "core.trustctime", "false")
    checkout.git("status")
    path = checkout.folder / "a.txt"
    as_before = path.stat()
    path.write_text("2")
    os.utime(path, ns=(as_before.st_atime_ns, as_before.st_mtime_ns))
    assert GitTree.at(checkout.folder).changes == ("a.txt",)


def test_a_submodule_that_is_ignored_counts(checkout: Checkout, tmp_path: Path) -> None:
    inner = Checkout(tmp_path / "inner")
    inner.commit(a_txt="1")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder))
    checkout.git(*add, "inner")
    checkout.commit()
    checkout.git("config", "submodule.inner.ignore", "all")
    checkout.git("config", "diff.ignoreSubmodules", "all")
    assert not GitTree.at(checkout.folder).is_dirty
    checkout.write("inner/a.txt", "2")
    assert GitTree.at(checkout.folder).changes == ("inner",)
    assert GitTree.at(checkout.folder / "inner").changes == ("a.txt",), "it is a checkout itself"


def test_replaced_objects_are_not_looked_at(checkout: Checkout) -> None:
    commit = checkout.commit(a_txt="1")
    tree = checkout.git("rev-parse", "HEAD^{tree}")
    evil = checkout.commit(a_txt="2")
    checkout.git("reset", "-q", "--hard", commit)
    checkout.git("replace", commit, evil)
    checkout.git("reset", "-q", "--hard")
    assert (checkout.folder / "a.txt").read_text() == "2"
    assert checkout.git("status", "--porcelain") == ""
    seen = GitTree.at(checkout.folder)
    assert (seen.commit, seen.tree, seen.changes) == (commit, tree, ("a.txt",))


@pytest.mark.parametrize("place", ["clean", "."])
def test_another_working_tree_than_the_folder_is_refused(
    checkout: Checkout, tmp_path: Path, place: str
) -> None:
    """Such as a clean clone beside it, or the folder above."""
    checkout.commit(a_txt="1")
    checkout.git("clone", "-q", str(checkout.folder), str(tmp_path / "clean"))
    checkout.write("a.txt", "2")
    checkout.git("config", "core.worktree", str(tmp_path / place))
    with pytest.raises(GitProblem, match=r"for the working tree.* undo core\.worktree"):
        GitTree.at(checkout.folder)


def test_what_has_moved_since(checkout: Checkout) -> None:
    commit = checkout.commit(a_txt="1")
    tree = GitTree.at(checkout.folder)
    checkout.write("coverage.xml", "of the run")
    assert tree.moved() is None, "what a run adds is its own affair"
    checkout.write("a.txt", "2")
    assert tree.moved() == "files of the commit were changed: a.txt"
    other = checkout.commit()
    assert tree.moved() == f"commit {other[:12]} was checked out in place of {commit[:12]}"
    (checkout.folder / ".git" / "HEAD").unlink()
    assert "not a git repository" in (tree.moved() or "")


def test_a_few_of_many_changes_are_named(checkout: Checkout) -> None:
    checkout.commit()
    for number in range(7):
        checkout.write(f"{number}.txt", "x")
    shown = GitTree.at(checkout.folder).shown_changes()
    assert shown == "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more"


def test_outside_of_a_checkout_and_without_a_commit(tmp_path: Path, checkout: Checkout) -> None:
    with pytest.raises(GitProblem, match="not a git repository"):
        GitTree.at(tmp_path)
    with pytest.raises(GitProblem):
        GitTree.at(checkout.folder)


def test_the_base_is_where_the_branch_left_the_main_one(checkout: Checkout) -> None:
    first = checkout.commit(a_txt="1")
    checkout.git("checkout", "-q", "-b", "feature")
    checkout.commit(a_txt="2")
    checkout.git("checkout", "-q", "main")
    checkout.commit(b_txt="1")
    checkout.git("checkout", "-q", "feature")
    assert GitTree.at(checkout.folder).base() == first


def test_the_remotes_main_branch_counts_before_a_local_one(
    tmp_path: Path, checkout: Checkout
) -> None:
    published = checkout.commit(a_txt="1")
    clone = Checkout(tmp_path / "clone")
    clone.git("remote", "add", "origin", str(checkout.folder))
    clone.git("fetch", "-q", "origin")
    clone.git("reset", "-q", "--hard", "origin/main")
    clone.commit(a_txt="2")
    clone.commit(a_txt="3")
    assert GitTree.at(clone.folder).base() == published


def test_on_the_main_branch_the_base_is_the_commit_before(checkout: Checkout) -> None:
    first = checkout.commit(a_txt="1")
    assert GitTree.at(checkout.folder).base() is None
    checkout.commit(a_txt="2")
    assert GitTree.at(checkout.folder).base() == first


def test_a_base_may_be_named(checkout: Checkout) -> None:
    first = checkout.commit(a_txt="1")
    checkout.commit(a_txt="2")
    checkout.commit(a_txt="3")
    assert GitTree.at(checkout.folder).base(first) == first
    with pytest.raises(GitProblem):
        GitTree.at(checkout.folder).base("nowhere")


def test_a_worktree_has_the_same_folder_at_another_commit_and_goes_away(
    checkout: Checkout,
) -> None:
    checkout.write("inner/a.txt", "old")
    first = checkout.commit()
    checkout.write("inner/a.txt", "new")
    checkout.commit()
    tree = GitTree.at(checkout.folder / "inner")
    with tree.worktree(first) as folder:
        assert (folder / "a.txt").read_text() == "old"
    assert not folder.exists()
    assert (checkout.folder / "inner/a.txt").read_text() == "new"
    assert len(checkout.git("worktree", "list").splitlines()) == 1


def test_a_folder_that_the_base_lacks_is_told(checkout: Checkout) -> None:
    first = checkout.commit(a_txt="1")
    checkout.write("inner/a.txt", "new")
    checkout.commit()
    tree = GitTree.at(checkout.folder / "inner")
    with pytest.raises(GitProblem, match="has no such folder"), tree.worktree(first):
        raise AssertionError
    assert len(checkout.git("worktree", "list").splitlines()) == 1


def test_when_the_commit_was_made(checkout: Checkout) -> None:
    began = int(time.time())
    checkout.commit(a_txt="1")
    assert began <= GitTree.at(checkout.folder).committed_at() <= time.time()


def test_what_git_tells_its_hooks_is_not_passed_on(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit = checkout.commit(a_txt="1")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert GitTree.at(checkout.folder).commit == commit
    assert "GIT_DIR" not in clean_environment()


def test_which_commits_it_has(checkout: Checkout) -> None:
    commit = checkout.commit(a_txt="1")
    tree = GitTree.at(checkout.folder)
    assert tree.has(commit)
    assert not tree.has("0" * 40)
    assert not tree.has(checkout.git("rev-parse", "HEAD^{tree}")), "a tree is no commit"


def test_a_worktree_runs_no_hook_of_its_commit(checkout: Checkout, tmp_path: Path) -> None:
    """As a repository has them whose hooks are among its files."""
    ran = tmp_path / "ran"
    checkout.git("config", "core.hooksPath", "hooks")
    checkout.write("hooks/post-checkout", f"#!/bin/sh\ntouch {ran}\n")
    (checkout.folder / "hooks" / "post-checkout").chmod(0o755)
    commit = checkout.commit(a_txt="1")
    tree = GitTree.at(checkout.folder)
    with tree.worktree(commit, fetches=False) as folder:
        assert (folder / "hooks" / "post-checkout").is_file()
    assert not ran.exists()


def test_a_worktree_of_a_partial_clone_may_be_kept_from_fetching(
    checkout: Checkout, tmp_path: Path
) -> None:
    commit = checkout.commit(a_txt="1" * 1_000)
    checkout.git("config", "uploadpack.allowFilter", "true")
    clone = Checkout(tmp_path / "clone")
    source = f"file://{checkout.folder}"
    clone.git("remote", "add", "origin", source)
    clone.git("fetch", "-q", "--filter=blob:none", "origin", "main")
    clone.git("update-ref", "refs/heads/main", commit)
    clone.git("config", "remote.origin.promisor", "true")
    clone.git("config", "extensions.partialClone", "origin")
    tree = GitTree.at(clone.folder)
    with pytest.raises(GitProblem), tree.worktree(commit, fetches=False):
        pass
    with tree.worktree(commit) as folder:
        assert (folder / "a.txt").read_text() == "1" * 1_000
