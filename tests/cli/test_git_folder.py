"""The repository of a folder, as git itself lays it out."""

import subprocess
from pathlib import Path

from cli.git_folder import repository_name, top_level


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_repository_its_folders_and_worktrees(tmp_path: Path) -> None:
    shop, tree = tmp_path / "shop", tmp_path / "feature"
    shop.mkdir()
    git(shop, "init", "-q")
    inner = shop / "a" / "b"
    inner.mkdir(parents=True)
    assert top_level(inner) == shop
    git(shop, "commit", "-q", "--allow-empty", "-m", "x")
    git(shop, "worktree", "add", "-q", str(tree))
    assert top_level(tree) == tree
    assert [repository_name(top) for top in (shop, tree)] == ["shop", "shop"]
    bare = tmp_path / "store.git"
    git(tmp_path, "clone", "-q", "--bare", "shop", "store.git")
    git(bare, "worktree", "add", "-q", "--detach", str(tmp_path / "of-bare"))
    assert repository_name(tmp_path / "of-bare") == "store"


def test_outside_of_a_repository_there_is_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert top_level(tmp_path) is None
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / ".git").mkdir()
    assert top_level(tmp_path / "x") is None
