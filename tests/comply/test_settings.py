"""The file that names agents."""

import json
from pathlib import Path
from typing import Any

import pytest

from comply.settings import BadSettings, agent_server, platform_name

TEXT = '{"theme": 1, "agent_servers": {"echo": {"command": "python", "args": ["e.py"], "x": 1}}}'


def test_an_agent_is_read_as_editors_write_it() -> None:
    server = agent_server(TEXT, "echo")
    assert (server.command, server.args, server.env) == ("python", ["e.py"], {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the file: is not JSON"),
        ("{}", "agent_servers: required"),
        (TEXT.replace('"python"', "1"), r"agent_servers\.echo\.command: should be"),
        (TEXT.replace('"echo"', '"other"'), "no agent echo in agent_servers; there are other"),
    ],
)
def test_a_bad_file_says_where(text: str, said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        agent_server(text, "echo")


def test_agents_that_another_program_starts_concern_no_other() -> None:
    """As an editor lists those that it installs from the registry."""
    others = {"theirs": {"type": "registry", "env": {}}, "odd": 5}
    servers = {**others, "echo": {"type": "custom", "command": "python"}}
    text = json.dumps({"agent_servers": servers})
    assert agent_server(text, "echo").command == "python"
    for name, said in {"theirs": r"theirs\.command: required", "odd": "odd: should be"}.items():
        with pytest.raises(BadSettings, match=rf"agent_servers\.{said}"):
            agent_server(text, name)


def test_what_lies_beside_the_file_is_found_there(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("bin/agent", "echo.py", "acp"):
        (tmp_path / name).write_text("")

    def started(command: str, *args: str) -> list[str]:
        servers = {"a": {"command": command, "args": args}}
        server = agent_server(json.dumps({"agent_servers": servers}), "a", tmp_path)
        return [server.command, *server.args]

    here = str(tmp_path)
    assert started("bin/agent") == [f"{here}/bin/agent"]
    assert started("./bin/agent", "acp") == [f"{here}/bin/agent", "acp"]
    assert started("echo.py") == [f"{here}/echo.py"]
    assert started("python", "echo.py", "no.py", "-m.py") == [
        *("python", f"{here}/echo.py", "no.py", "-m.py")
    ]
    assert started("/bin/agent") == ["/bin/agent"]


def entry(**distribution: Any) -> str:
    about = {"id": "echo", "name": "Echo", "version": "1.0.0", "description": "Echoes"}
    return json.dumps(about | {"distribution": distribution})


def test_an_entry_of_the_registry_is_run_as_it_says(tmp_path: Path) -> None:
    binary = {platform_name(): {"archive": "https://example.com/a.zip", "cmd": "./echo"}}
    npx = {"package": "echo@1.0.0", "args": ["--acp"], "env": {"A": "1"}}

    def started(text: str) -> list[str]:
        server = agent_server(text, "echo", tmp_path)
        return [server.command, *server.args, *server.env]

    assert started(entry(npx=npx, binary=binary)) == ["npx", "--yes", "echo@1.0.0", "--acp", "A"]
    assert started(entry(uvx={"package": "echo"})) == ["uvx", "echo"]
    with pytest.raises(
        BadSettings, match=r"\./echo is not beside the file: unpack the archive for"
    ):
        started(entry(binary=binary))
    (tmp_path / "echo").write_text("")
    assert started(entry(npx=npx, binary=binary)) == [f"{tmp_path}/echo"]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (entry(uvx={"package": "echo"}), "other", "no agent other in the file; it is echo"),
        (entry(binary={"vax-vms": {"cmd": "x"}}), "echo", "has no program for .*; it has vax-vms"),
        (entry(uvx={}), "echo", r"distribution\.uvx\.package: required"),
    ],
)
def test_a_bad_entry_says_what_is_wrong(text: str, name: str, said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        agent_server(text, name)


def test_a_command_below_ones_home_is_found_there_and_all_else_is_left_to_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Zed does: the command alone, and no variables."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def started(command: str, *args: str) -> list[str]:
        servers = {"a": {"command": command, "args": args, "env": {"X": "~/x"}}}
        server = agent_server(json.dumps({"agent_servers": servers}), "a", tmp_path / "elsewhere")
        assert server.env == {"X": "~/x"}
        return [server.command, *server.args]

    assert started("~/bin/agent", "~/x") == [f"{tmp_path}/bin/agent", "~/x"]
    for other in ("~other/agent", "$HOME/agent", "a~/b"):
        assert started(other) == [other]
