"""The tutorial shows a real run: play it with a real node, and compare what it shows.

Its commands run in a shell. Where an agent acts, an MCP client acts through the server that `cacp
connect` configured, and the hooks that it configured are run. RECORD=1 makes the README's picture.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from rich.console import Console
from rich.text import Text

from tests.support.console import Shell, blocks, compare, console_steps
from tests.support.mcp_agent import McpAgent, run
from tests.support.node import Node

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/show.svg"
PICTURED = "cacp show 'Get a profile'"
HOME = "/home/ada"
"""The home directory in the tutorial."""
CLAUDE = '#!/bin/sh\necho "cacp: cacp mcp - ✔ Connected"\n'
"""Stands in for `claude mcp list`."""


class Played(NamedTuple):
    """A line of a ```claude block: the user's words, a hook or a call, and what it shows. Of a
    hook's text, the tutorial shows some lines."""

    kind: str
    words: str
    shown: str


def played(block: str) -> Iterator[Played]:
    for part in re.split(r"(?m)^(?=[>◇●] )", block)[1:]:
        if part.startswith("◇"):
            _, _, shown = part.partition("\n")
            yield Played("hook", "hook", f"…\n{_dedented(shown)}\n…")
        else:
            call, _, shown = part[2:].partition("\n  ⎿ ")
            kind = "call" if part.startswith("●") else "prompt"
            yield Played(kind, " ".join(call.split()), _dedented(shown))


def _dedented(text: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in text.splitlines())


class Seat:
    """An agent in a repository that is connected: its tools, its hooks, what it was shown last."""

    def __init__(self, agent: McpAgent, folder: Path, shell: Shell) -> None:
        self._agent, self._folder, self._shell = agent, folder, shell
        self._event = "UserPromptSubmit"
        self._told = ""
        self._project = ""

    async def play(self, line: Played) -> str:
        """What the agent is shown."""
        if line.kind == "prompt":
            self._event = "UserPromptSubmit"
            return ""
        text = self._hook() if line.kind == "hook" else await self._call(line.words)
        self._told = text if "next: " in text else self._told
        self._project = next(iter(re.findall(r"projectId:? `([^`]+)", text)), self._project)
        return text

    async def _call(self, words: str) -> str:
        """`{…` stands for the arguments that the agent was told."""
        self._event = "PostToolUse"
        tool, _, written = words.partition(" ")
        given: dict[str, Any] = json.loads(re.sub(r"^\{…(, )?", "{", written))
        if written.startswith("{…"):
            given = self._arguments(tool) | given
        return await self._agent.use(tool, **given)

    def _arguments(self, tool: str) -> dict[str, Any]:
        """Those that `next` named. An agent that has joined nothing knows its project only."""
        told = re.search(rf"next: {tool}(?: with)?:? `?(?=\{{)", self._told)
        if told is None:
            assert tool in ("cacp_project_join", "cacp_contract_propose"), (tool, self._told)
            return {"projectId": self._project}
        arguments: dict[str, Any]
        arguments, _ = json.JSONDecoder().raw_decode(self._told, told.end())
        return arguments

    def _hook(self) -> str:
        settings = json.loads((self._folder / ".claude/settings.local.json").read_text())
        [entry] = settings["hooks"][self._event]
        done = subprocess.run(
            ["bash", "-c", entry["hooks"][0]["command"]],
            env=self._shell.environment,
            input=json.dumps({"session_id": "1", "hook_event_name": self._event}),
            capture_output=True,
            cwd=self._folder,
            text=True,
            check=True,
        )
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])


@pytest.mark.sqlite
def test_the_tutorial_shows_what_happens(tmp_path: Path) -> None:
    home = tmp_path / "home"
    data, programs = home / "cacp-server/data", tmp_path / "bin"
    for folder in (data, programs):
        folder.mkdir(parents=True)
    (programs / "claude").write_text(CLAUDE)
    (programs / "claude").chmod(0o755)
    settings = {"db": data / "cacp.db", "agent_id": "aid://localhost/local@1.0.0", "repo": "local"}
    with Node(data, **settings) as node:
        shell = Shell(
            {
                "HOME": str(home),
                "CACP_URL": node.url,
                "CACP_HOOK_SECONDS": "60",
                "COLUMNS": "80",
            },
            programs,
        )
        run(lambda: follow(shell, home))


async def follow(shell: Shell, home: Path) -> None:
    seats: dict[str, Seat] = {}
    async with AsyncExitStack() as stack:
        for language, name, content in blocks((ROOT / "docs/tutorial.md").read_text()):
            if language == "console":
                type_in(shell, home, content)
            if language == "claude":
                folder = home / "shop" / name
                if name not in seats:
                    agent = await stack.enter_async_context(started(folder, shell))
                    seats[name] = Seat(McpAgent(agent), folder, shell)
                for line in played(content):
                    compare(line.words, line.shown, await seats[name].play(line))
    assert len(seats) == 2


def started(folder: Path, shell: Shell) -> Client:
    """A client of the MCP server that a repository's .mcp.json names."""
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["cacp"]
    command = StdioServerParameters(**server, env=shell.environment, cwd=folder)
    return Client(stdio_client(command), mode="legacy")


def type_in(shell: Shell, home: Path, block: str) -> None:
    for command, shown in console_steps(block):
        if command.startswith("cacp watch"):
            printed = shell.first_lines(command, len(shown.splitlines()))
        else:
            printed = shell.run(command)
        compare(command, shown, printed.replace(str(home), HOME))
        if command == PICTURED and "RECORD" in os.environ:
            PICTURE.write_text(picture(command, shell))


def picture(command: str, shell: Shell) -> str:
    """A command and what it prints on a terminal, as SVG without fonts of others."""
    coloured = shell.run(f"FORCE_COLOR=1 TERM=xterm-256color COLUMNS=96 {command}")
    console = Console(record=True, width=96, file=StringIO(), legacy_windows=False)
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
    console.print(Text.from_ansi(coloured.rstrip()))
    svg = console.export_svg(title="~/shop", unique_id="show")
    svg = re.sub(r"\s*@font-face \{.*?\n    \}|\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
