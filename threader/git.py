"""Runs git for the threader, and waits while other processes hold its locks."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from threader.errors import NotReady
from threader.landing import SiteFailed
from threader.process import MARKER

_QUIET = (
    "--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false",
    "-c", "user.name=cacp thread", "-c", "user.email=cacp-thread@localhost",
)  # fmt: skip

_FOREIGN = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"})
"""Set when a git hook started the threader: they would direct every command to another tree."""

_LOCKED = re.compile(
    r"Unable to create '[^'\n]*?(?P<name>[^/'\n]+)\.lock': File exists|Unable to write index"
)
"""The message of git when another git holds a lock; a merge names the index only."""

_OVERWRITTEN = re.compile(
    r"^error: (?P<said>.* would be overwritten by \w+:)\n(?P<names>(?:\t.*(?:\n|$))+)", re.MULTILINE
)

FIRST_LOOK, LONGEST_LOOK = 0.05, 2.0


class GitFailed(SiteFailed):
    """git failed. The text names the files that a merge would overwrite, or is git's last line."""


class GitLocked(GitFailed):
    """Another git holds a lock; its text is the lock's name."""


async def git(folder: Path, marker: str, *args: str) -> str:
    """Run git in `folder`; returns its output. Raises GitFailed."""
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    # A worktree whose .git was removed must not count as part of the repository around it.
    ceiling = f"{marker}/worktrees"
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": ceiling, "LC_ALL": "C"}
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *_QUIET, *args, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True, env={**env, MARKER: marker},
        )  # fmt: skip
    except OSError as error:
        reason = error.strerror or type(error).__name__
        hint = "; is it on PATH?" if error.filename == "git" else ""
        raise GitFailed(f"git cannot be started: {reason}{hint}") from None
    talk = asyncio.ensure_future(process.communicate())
    try:
        output, _ = await asyncio.shield(talk)
    except asyncio.CancelledError:
        # A git that kept running would race with the undo.
        await talk
        raise
    text = output.decode("utf-8", "replace").strip()
    if not process.returncode:
        return text
    if locked := _LOCKED.search(text):
        raise GitLocked(f"{locked['name'] or 'index'}.lock")
    raise GitFailed(_reason(text) or f"git {args[0]} failed")


def _reason(text: str) -> str:
    """The reason for the failure in git's output."""
    refusals = [
        f"{match['said']} {', '.join(map(str.strip, match['names'].splitlines()))}"
        for match in _OVERWRITTEN.finditer(text)
    ]
    return "; ".join(refusals) or "".join(text.splitlines()[-1:])


@dataclass
class PatientGit:
    """Runs git, and waits up to `limit` seconds while another git holds a lock.

    `tell` is called with what is waited for, and None when that is over.
    """

    marker: str
    limit: float
    tell: Callable[[str | None], None] = lambda _: None

    async def __call__(self, folder: Path, *args: str) -> str:
        """Run git. Raises GitFailed, or NotReady when a lock stays."""
        try:
            return await git(folder, self.marker, *args)
        except GitLocked as lock:
            self.tell(f"another git holds {lock}; waiting up to {self.limit:.0f} s for it")
        try:
            return await self._retry(folder, args)
        finally:
            self.tell(None)

    async def _retry(self, folder: Path, args: Sequence[str]) -> str:
        deadline = time.monotonic() + self.limit
        pause = FIRST_LOOK
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_LOOK)
            try:
                if args[0] == "merge" and "--abort" not in args:
                    await self._abort(folder, args[-1])
                return await git(folder, self.marker, *args)
            except GitLocked as lock:
                if time.monotonic() >= deadline:
                    raise NotReady(
                        f"another git has held {lock} for {self.limit:.0f} s; end it, or remove "
                        "that lock if no git runs, and resume"
                    ) from None

    async def _abort(self, folder: Path, commit: str) -> None:
        """Abort a merge of `commit` that a lock left unfinished."""
        try:
            half = await git(folder, self.marker, "rev-parse", "--verify", "-q", "MERGE_HEAD")
        except GitFailed:
            return
        if half == commit:
            await git(folder, self.marker, "merge", "--abort")
