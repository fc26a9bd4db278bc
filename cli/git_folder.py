"""Which git repository a folder belongs to, read from its files: git itself need not be there."""

from pathlib import Path


def top_level(folder: Path) -> Path | None:
    """The top level of the working tree that holds a folder; None outside of one."""
    folder = folder.resolve()
    return next((level for level in (folder, *folder.parents) if _git_of(level)), None)


def repository_name(top: Path) -> str:
    """The name of the repository at a top level: of its folder. A further worktree has the name of
    the repository that it was made from."""
    git = _git_of(top) or top / ".git"
    common = git / "commondir"
    if common.is_file():
        git = (git / common.read_text().strip()).resolve()
        if git.name != ".git":
            return git.name.removesuffix(".git")
        return git.parent.name
    return top.name


def _git_of(level: Path) -> Path | None:
    """The git directory of a top level; None when the folder is none."""
    git = level / ".git"
    if (git / "HEAD").is_file():
        return git
    if not git.is_file():
        return None
    # A worktree or a submodule has a file that names the directory.
    head, _, name = git.read_text(errors="replace").partition("gitdir:")
    named = (level / name.strip()).resolve()
    return named if not head and (named / "HEAD").is_file() else None
