"""Runs git for a run of the threader, patient with whoever else holds its locks."""

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
"""Set where a git hook started us: they would send every command to another tree."""

_LOCKED = re.compile(
    r"Unable to create '[^'\n]*?(?P<name>[^/'\n]+)\.lock': File exists|Unable to write index"
)
"""What git says of a lock that another git holds; a merge names the index only."""

_OVERWRITTEN = re.compile(
    r"^error: (?P<said>.* would be overwritten by \w+:)\n(?P<names>(?:\t.*(?:\n|$))+)", re.MULTILINE
)

FIRST_LOOK, LONGEST_LOOK = 0.05, 2.0


class GitFailed(SiteFailed):
    """git said no; whose files a merge would overwrite, else its last line."""


class GitLocked(GitFailed):
    """Another git holds a lock; its text is the lock's name."""


async def git(folder: Path, marker: str, *args: str) -> str:
    """Run git in `folder`; returns its output. Raises GitFailed with its last words."""
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    # A worktree whose .git a worker removed must not pass for a folder of the repository around it.
    ceiling = f"{marker}/worktrees"
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": ceiling, "LC_ALL": "C"}
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *_QUIET, *args, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True, env={**env, MARKER: marker},
        )  # fmt: skip
    except FileNotFoundError:
        raise GitFailed("git cannot be started") from None
    talk = asyncio.ensure_future(process.communicate())
    try:
        output, _ = await asyncio.shield(talk)
    except asyncio.CancelledError:
        # A git that was left alone would go on beside whatever undoes it.
        await talk
        raise
    text = output.decode("utf-8", "replace").strip()
    if not process.returncode:
        return text
    if locked := _LOCKED.search(text):
        raise GitLocked(f"{locked['name'] or 'index'}.lock")
    raise GitFailed(_reason(text) or f"git {args[0]} failed")


def _reason(text: str) -> str:
    """Why git gave up, of all that it said."""
    told = [
        f"{one['said']} {', '.join(map(str.strip, one['names'].splitlines()))}"
        for one in _OVERWRITTEN.finditer(text)
    ]
    return "; ".join(told) or "".join(text.splitlines()[-1:])


@dataclass
class PatientGit:
    """git that waits while another holds a lock, up to `limit` seconds.

    `tell` hears what is waited for, and None when that is over.
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
        """Take back what a merge of `commit` that met a lock has left half done."""
        try:
            half = await git(folder, self.marker, "rev-parse", "--verify", "-q", "MERGE_HEAD")
        except GitFailed:
            return
        if half == commit:
            await git(folder, self.marker, "merge", "--abort")
