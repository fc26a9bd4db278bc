"""The agents' real commands read what `cacp connect` writes. `make comply` runs this: it fetches
them with npm into the folder that REAL_AGENTS names. Cursor's command is not on npm.
"""

import subprocess
from pathlib import Path

import pytest

from cli.connect_agents import AGENTS
from cli.connect_check import ask_agent
from tests.cli.connecting import Workplace, keys_of
from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.npm import COMMANDS, agent_commands, needs_real_agents

pytestmark = needs_real_agents


@pytest.fixture(scope="module")
def commands() -> Path:
    """The folder of the agents' commands."""
    return agent_commands()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Path) -> Workplace:
    node = subprocess.run(["which", "node"], capture_output=True, text=True, check=True).stdout
    place = Workplace.at(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", f"{place.bin}:{commands}:{Path(node).parent}:/usr/bin:/bin")
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(place.home / name.lower()))
    return place


def trust(agent: str, place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person does who accepts the folder at the agent's first start."""
    if agent == "codex":
        config = place.home / ".codex" / "config.toml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(f'[projects."{place.top}"]\ntrust_level = "trusted"\n')
    if agent == "gemini":
        monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")


@pytest.mark.parametrize("agent", COMMANDS)
def test_the_agent_lists_the_server_until_it_is_disconnected(
    node: Node, place: Workplace, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("AGENTS.md", "# Shop\n")
    place.write(".codex/config.toml", "# mine\nmodel_reasoning_effort = 'low'\n")
    place.write(".gemini/settings.json", '{\n  // mine\n  "ui": {"theme": "Default"}\n}\n')
    before = files(place)
    first = place.connect(node, agent)
    if agent in ("codex", "gemini"):
        assert first.exit_code == 1
        assert AGENTS[agent].hint in first.stdout
        trust(agent, place, monkeypatch)
    else:
        assert first.exit_code == 0, first.output
    made = files(place)
    second = cacp("connect", agent)
    assert second.exit_code == 0, second.output
    assert "Nothing to change." in second.stdout
    assert (files(place), len(keys_of(node))) == (made, 1)
    if agent != "codex":
        # Codex starts no server for its list.
        assert "onnected" in second.stdout.splitlines()[-1]
    assert cacp("disconnect", agent).exit_code == 0
    assert (files(place), keys_of(node)) == (before, [])
    assert ask_agent(AGENTS[agent], place.top).state == "missing"


def files(place: Workplace) -> dict[str, bytes]:
    """The repository's files, without what opencode puts beside plugins on its own."""
    own = ("node_modules", "package.json", "package-lock.json", "bun.lock", ".gitignore")
    return {
        name: content
        for name, content in place.files().items()
        if name.startswith("shop/")
        and not (name.startswith("shop/.opencode/") and any(part in name for part in own))
    }
