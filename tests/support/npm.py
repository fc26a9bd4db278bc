"""Programs from npm, in a folder that is kept between runs."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

CACHE = os.environ.get("REAL_AGENTS")
"""The folder of the agents' commands. `make comply` names one."""
COMMANDS = {
    "claude": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.169.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "opencode": "opencode-ai@1.18.33",
}
"""The packages of agents' commands, in releases for Node.js 20."""

needs_real_agents = [
    pytest.mark.soak,
    pytest.mark.skipif(CACHE is None, reason="REAL_AGENTS names no folder: see make comply"),
]
"""The marks of tests that run agents' commands."""


def agent_commands() -> Path:
    """The folder with the commands of all agents, fetched if they aren't there."""
    return npm_install(Path(str(CACHE)).resolve(), list(COMMANDS.values()))


def npm_install(folder: Path, packages: Sequence[str]) -> Path:
    """The folder with the commands of packages. What is there stays, unless the list has changed.

    Raises CalledProcessError, and FileNotFoundError without npm.
    """
    installed, wanted = folder / "installed.json", json.dumps(list(packages))
    if not installed.exists() or installed.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run(["npm", "install", *options, *packages], check=True)
        installed.write_text(wanted)
    return folder / "node_modules" / ".bin"
