"""Asks an agent's own command whether it lists the MCP server `cacp`."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal, NamedTuple

from cli.connect_agents import SERVER, ConnectedAgent

SECONDS = 60
"""How long the command may take: it starts every server that it lists."""

State = Literal["listed", "unusable", "missing", "not installed", "failed"]

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LISTED = re.compile(rf"(?<![\w/.-]){SERVER}(?![\w/.-])")
_UNUSABLE = re.compile(r"fail|error|disabled|disconnected|pending|not loaded|needs", re.IGNORECASE)


class ServerListing(NamedTuple):
    """What an agent's command says of our server. `unusable`: it lists the server, but doesn't use
    it. `line` is the line that says so, or why the command failed."""

    command: str
    state: State
    line: str = ""


def ask_agent(agent: ConnectedAgent, top: Path) -> ServerListing:
    """Run the agent's command in a checkout."""
    command = " ".join([agent.program, *agent.listing])
    program = shutil.which(agent.program)
    if program is None:
        return ServerListing(command, "not installed")
    try:
        done = subprocess.run(
            [program, *agent.listing],
            cwd=top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ServerListing(command, "failed", f"it did not end within {SECONDS} seconds")
    except OSError as error:
        return ServerListing(command, "failed", str(error.strerror))
    return judged(command, f"{done.stdout}\n{done.stderr}", done.returncode)


def judged(command: str, output: str, status: int = 0) -> ServerListing:
    """What the output of a listing says.

    >>> judged("claude mcp list", "cacp: cacp mcp - ✔ Connected").state
    'listed'
    >>> judged("gemini mcp list", "○ cacp: cacp mcp (stdio) - Disabled").state
    'unusable'
    """
    lines = [_COLOUR.sub("", line).strip() for line in output.splitlines()]
    for line in lines:
        if match := _LISTED.search(line):
            # What precedes the name is a sign at most; a sentence may name the server too.
            if len(line[: match.start()].split()) > 2:
                continue
            state: State = "unusable" if _UNUSABLE.search(line) else "listed"
            return ServerListing(command, state, line)
    if status:
        last = " ".join([line for line in lines if line][-3:])
        return ServerListing(command, "failed", last or f"it ended with status {status}")
    return ServerListing(command, "missing")
