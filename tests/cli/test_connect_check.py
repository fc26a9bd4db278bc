"""What agents' own commands say of the server, as they print it."""

import doctest
from pathlib import Path

import pytest

from cli import connect_check
from cli.connect_agents import AGENTS
from cli.connect_check import ask_agent, judged
from tests.cli.connecting import Workplace


def test_the_examples_hold() -> None:
    assert doctest.testmod(connect_check).failed == 0


@pytest.mark.parametrize(
    ("output", "state"),
    [
        # Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, opencode 1.18: as they printed it.
        ("Checking MCP server health…\n\ncacp: cacp mcp - ✔ Connected\n", "listed"),
        ("cacp: cacp mcp - ✘ Failed to connect", "unusable"),
        ("cacp: cacp mcp - ⏸ Pending approval (run `claude` to approve)", "unusable"),
        ("Name  Command  Status\ncacp  cacp     enabled   Unsupported", "listed"),
        ("No MCP servers configured yet. Try `codex mcp add my-tool -- my-command`.", "missing"),
        ("Configured MCP servers:\n\n✓ cacp: cacp mcp (stdio) - Connected", "listed"),
        ("○ cacp: cacp mcp (stdio) - Disabled", "unusable"),
        ("\x1b[0m\n●  ✓ cacp \x1b[90mconnected", "listed"),
        ("●  ✗ cacp \x1b[90mfailed", "unusable"),
        ("docs: cacp-docs --key-file ~/.config/cacp/x - ✔ Connected", "missing"),
    ],
)
def test_listings_are_understood(output: str, state: str) -> None:
    assert judged("x mcp list", output).state == state


def test_a_command_that_fails_says_why() -> None:
    listing = judged("x mcp list", "\nError in settings:\n  line 3\n", 52)
    assert (listing.state, listing.line) == ("failed", "Error in settings: line 3")
    assert judged("x", "", 7).line == "it ended with status 7"


def test_the_command_runs_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Workplace.at(tmp_path, monkeypatch)
    agent = AGENTS["claude"]
    assert ask_agent(agent, place.top) == ("claude mcp list", "not installed", "")
    place.stand_in("claude", ".mcp.json", "cacp: cacp mcp - ✔ Connected")
    assert ask_agent(agent, place.top).state == "missing"
    place.write(".mcp.json", "cacp")
    monkeypatch.chdir("/")
    assert ask_agent(agent, place.top).line == "cacp: cacp mcp - ✔ Connected"
    (place.bin / "claude").write_text("no program")
    assert ask_agent(agent, place.top) == ("claude mcp list", "failed", "Exec format error")
