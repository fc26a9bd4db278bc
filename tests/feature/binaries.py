"""Real agents from npm, run without a user and without an account: Claude Code and opencode.

Each has a home and a git repository of its own, `cacp connect` connects it with the node, and a
stand-in is the API of its model. Whatever it asks other hosts is refused.
"""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.comply import real_agents
from tests.comply.real_agents import Pointed, elsewhere
from tests.feature.sheet import Sheet
from tests.support.node import Node
from tests.support.waiting import PATIENCE


class RealAgent:
    """The agent of a sheet's repository, at a node. Each turn is a process of its own.

    `api` is the URL of its model's API, `folder` is for all its files, `programs` holds those from
    npm.
    """

    program: str
    arguments: tuple[str, ...]
    """Those of a turn whose words are on standard input."""

    def __init__(self, sheet: Sheet, node: Node, api: str, folder: Path, programs: Path) -> None:
        self.name, self.node = sheet.repo, node
        self.key = node.key(sheet.agent, sheet.repo)
        self._checkout, self._log = folder / sheet.repo, folder / f"{sheet.repo}.log"
        home = folder / f"{sheet.repo}-home"
        pointed = self.pointed(api)
        for file, text in pointed.files.items():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_text(text)
        home.mkdir(exist_ok=True)
        places = {f"XDG_{kind}_HOME": kind.lower() for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        own = Path(sys.executable).parent
        self._env = {
            "PATH": os.pathsep.join((str(own), str(programs), os.environ["PATH"])),
            "HOME": str(home),
            **{variable: str(home / place) for variable, place in places.items()},
            **elsewhere(api),
            **pointed.env,
            # The machine may be busy: a hook that gave up would make it another story.
            "CACP_HOOK_SECONDS": "30",
        }
        self._checkout.mkdir()
        self._run("git", "init", "--quiet")
        target = ["--url", node.url, "--db", str(node.db), "--agent-id", sheet.agent]
        self._run("cacp", "connect", self.program, "--repo", sheet.repo, *target, "--yes")

    def pointed(self, api: str) -> Pointed:
        """How it is brought to its model."""
        raise NotImplementedError

    def work(self, prompt: str) -> None:
        """One turn."""
        self._run(self.program, *self.arguments, stdin=prompt)

    def _run(self, program: str, *arguments: str, stdin: str = "") -> None:
        began = time.monotonic()
        done = subprocess.run(
            [program, *arguments],
            input=stdin,
            cwd=self._checkout,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        with self._log.open("a") as log:
            print("$", program, *arguments, file=log)
            print(done.stdout, done.stderr, f"after {time.monotonic() - began:.1f} s", file=log)
        assert done.returncode == 0, (program, arguments, done.stdout, done.stderr)


class ClaudeCode(RealAgent):
    program = "claude"
    arguments = ("--print", "--allowedTools", "mcp__cacp")

    def pointed(self, api: str) -> Pointed:
        claude = real_agents.claude(api)
        # On a busy machine its servers take longer to start than it waits for them.
        waits = dict.fromkeys(("MCP_TIMEOUT", "MCP_CONNECT_TIMEOUT_MS"), "100000")
        blocks = {"MCP_CONNECTION_NONBLOCKING": "0"}
        return replace(claude, env=claude.env | waits | blocks)


class Opencode(RealAgent):
    program = "opencode"
    arguments = ("run",)

    def pointed(self, api: str) -> Pointed:
        return real_agents.opencode(api)
