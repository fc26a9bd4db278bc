"""Which paths a task may write (agent-threader-v2 §8 "Required Write Safeguards"). Pure."""

import posixpath
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

ALWAYS_PROTECTED = (
    ".git", ".git/*", "*/.git", "*/.git/*",
    ".threader", ".threader/*", "*/.threader", "*/.threader/*",
    ".gitmodules", ".env", ".env.*", "*/.env", "*/.env.*",
    ".ssh/*", "*/.ssh/*", "*.pem", "*.key", "id_rsa*", "*/id_rsa*",
)  # fmt: skip
"""The denylist that no manifest can override: git's data, the runner's own state, secrets."""


MAX_PARTS = 100
"""Deeper than any project, and within what recursive tools can handle."""


class PathRefused(ValueError):
    """The text says which rule the path breaks."""


def fold(path: str) -> str:
    """`path` with every distinction removed that some file system ignores."""
    parts = unicodedata.normalize("NFKC", path).casefold().split("/")
    return "/".join(part.rstrip(". ") or part for part in parts)


def normalise(path: str) -> str:
    """A relative POSIX path without `.` and `..`. Raises PathRefused when it leads outside."""
    if not path or len(path.encode("utf-8", "surrogatepass")) > 4096:
        raise PathRefused("a path has 1 to 4096 bytes")
    if any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in path):
        raise PathRefused("the path has control or invisible characters")
    if "\\" in path:
        raise PathRefused("the path has a backslash; parts are separated by /")
    clean = posixpath.normpath(path)
    if any(form.startswith(("/", "~")) or form[1:2] == ":" for form in (path, clean)):
        raise PathRefused("the path is absolute; it must be relative to the workspace")
    if clean == ".." or clean.startswith("../"):
        raise PathRefused("the path leaves the workspace")
    if clean == "." or path.endswith("/"):
        raise PathRefused("the path names a folder, not a file")
    if clean.count("/") >= MAX_PARTS:
        raise PathRefused(f"the path has more than {MAX_PARTS} parts")
    return clean


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether `path` is one of `patterns` (globs, * crosses /), whatever its case."""
    folded = fold(path)
    return any(fnmatchcase(folded, fold(pattern)) for pattern in patterns)


def check_path(path: str, protected: Sequence[str]) -> str:
    """The normalised path of a write. Raises PathRefused."""
    clean = normalise(path)
    if matches(clean, (*ALWAYS_PROTECTED, *protected)):
        raise PathRefused("the file is protected")
    return clean
