"""Hooks are added to an agent's settings once, nothing else changes, and they can be taken out."""

import doctest
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import hook_install, json_edit
from cli.file_edit import apply
from cli.hook import EVENTS
from cli.hook_install import (
    HookCall,
    file_of,
    install,
    installed,
    needs_activation,
    program,
    uninstall,
    with_hooks,
    without_hooks,
)
from tests.support.waiting import PATIENCE

JSON_AGENTS = [agent for agent in EVENTS if agent != "opencode"]
HERE = HookCall()
THEIRS = """{
    "model": "x", // the cheap one
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [
            {"matcher": "Bash", "hooks": []}
        ]
    }
}
"""


def hooks_of(text: str) -> dict[str, Any]:
    hooks = json_edit.loads(text)["hooks"]
    assert isinstance(hooks, dict)
    return hooks


def test_the_examples_hold() -> None:
    assert doctest.testmod(hook_install).failed == 0


@pytest.mark.parametrize(
    ("agent", "event", "timeout"),
    [("claude", "Stop", 10), ("codex", "Stop", 10), ("gemini", "AfterAgent", 10_000)],
)
def test_every_event_gets_its_hook_once(agent: str, event: str, timeout: int) -> None:
    """Golden: the form that the agents take."""
    made = with_hooks(None, agent, HERE)
    assert json.loads(made)["hooks"][event] == [
        {
            "hooks": [
                {"type": "command", "command": f"cacp hook {agent} {event}", "timeout": timeout}
            ]
        }
    ]
    assert list(installed(made, agent)) == list(EVENTS[agent])
    assert with_hooks(made, agent, HERE) == made


@pytest.mark.parametrize("agent", JSON_AGENTS)
@pytest.mark.parametrize("text", [THEIRS, '{"model": "x"}', '{\n\t"hooks": {\n\t\t"A": []\n\t}\n}'])
def test_what_was_there_stays_and_comes_back(agent: str, text: str) -> None:
    made = with_hooks(text, agent, HERE)
    hooks = hooks_of(made)
    for event, groups in json_edit.loads(text).get("hooks", {}).items():
        assert hooks[event][: len(groups)] == groups
    assert ("// the cheap one" in made) == ("// the cheap one" in text)
    assert without_hooks(made, agent) == text
    assert without_hooks(text, agent) == text


def test_gemini_is_asked_only_for_the_compressions_of_its_user() -> None:
    """It announces its own at each turn, whether or not one is due."""
    (group,) = hooks_of(with_hooks(None, "gemini", HERE))["PreCompress"]
    assert group["matcher"] == "manual"


def test_another_url_or_key_takes_the_place_of_the_one_before() -> None:
    call = HookCall("/opt/my venv/bin/cacp", "http://n.example/$(x)", Path("/k"))
    made = with_hooks(with_hooks(THEIRS, "claude", HERE), "claude", call)
    assert hooks_of(made)["Stop"][1]["hooks"][0]["command"] == (
        "'/opt/my venv/bin/cacp' hook claude --url 'http://n.example/$(x)' --key-file /k Stop"
    )
    assert len(hooks_of(made)["Stop"]) == 2
    assert without_hooks(made, "claude") == THEIRS


def test_agents_do_not_touch_each_others_hooks() -> None:
    both = with_hooks(with_hooks("{}", "claude", HERE), "codex", HERE)
    assert without_hooks(both, "codex") == with_hooks("{}", "claude", HERE)
    broken = '{"hooks": {"Stop": [{"hooks": [{"command": "say \\"cacp hook claude"}, 7]}, 8]}}'
    assert without_hooks(broken, "claude") == broken


@pytest.mark.parametrize("agent", EVENTS)
def test_nothing_is_left_of_a_file_that_was_made(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (change,) = install(agent, url="http://n:1")
    assert (change.path, change.before) == (tmp_path / file_of(agent, user=False), None)
    assert list(tmp_path.iterdir()) == []
    apply([change])
    assert install(agent, url="http://n:1") == []
    words = [program(), "hook", agent, "--url", "http://n:1"]
    assert installed(change.path.read_text(), agent) == {e: [*words, e] for e in EVENTS[agent]}
    apply(uninstall(agent))
    assert list(tmp_path.iterdir()) == []
    assert uninstall(agent) == []


def test_the_plugin_calls_the_node_that_it_was_installed_for(tmp_path: Path) -> None:
    file = tmp_path / "cacp.js"
    (change,) = install("opencode", file=file, url='http://n:1/"', key_file=Path("/k"))
    words = [program(), "hook", "opencode", "--url", 'http://n:1/"', "--key-file", "/k"]
    assert f"const COMMAND = {json.dumps(words)}\n" in (change.after or "")
    file.write_text("export const Other = 1")
    for refused in (install, uninstall):
        with pytest.raises(ValueError, match="another plugin"):
            refused("opencode", file=file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"hooks": []}', "hooks: should be an object"),
        ('{"hooks": {"Stop": {}}}', r"hooks\.Stop: should be a list"),
        ("[]", "a JSON object"),
        ('{"a": 1\n "b"}', "line 2"),
    ],
)
def test_settings_of_another_form_are_left_alone(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    for refused in (install, uninstall):
        with pytest.raises(ValueError, match=problem):
            refused("claude", file=file)
    assert file.read_text() == text


def test_files_are_the_agents_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert file_of("claude", user=False) == Path(".claude/settings.local.json")
    assert file_of("claude", user=True) == tmp_path / "settings.json"
    assert file_of("codex", user=True) == Path.home() / ".codex" / "hooks.json"
    assert file_of("gemini", user=True) == Path.home() / ".gemini" / "settings.json"
    plugin = Path.home() / ".config" / "opencode" / "plugins" / "cacp.js"
    assert file_of("opencode", user=True) == plugin


def test_the_program_is_named_so_that_the_agents_shell_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "bin" / "cacp"
    script.parent.mkdir()
    script.touch(0o755)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "cacp"


def test_a_program_of_an_active_environment_alone_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "venv" / "bin" / "cacp"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("PATH", f"{script.parent}:/nowhere")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert not needs_activation()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    assert needs_activation()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "cacp").symlink_to(script)
    monkeypatch.setenv("PATH", f"{script.parent}:{tmp_path / 'links'}")
    assert not needs_activation()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "other"))
    monkeypatch.setenv("PATH", str(script.parent))
    assert not needs_activation()


PLAY = """
import { Cacp } from "./cacp.mjs"
const prompted = []
const client = { session: { promptAsync: async (given) => prompted.push(given) } }
const hooks = await Cacp({ client })
const info = { id: "inner", parentID: "outer" }
const event = (type, sessionID) => hooks.event({ event: { type, properties: { sessionID } } })
await hooks.event({ event: { type: "session.created", properties: { info } } })
const part = { id: "prt_1", sessionID: "s", messageID: "m", type: "text", text: "hi" }
const message = { parts: [part] }
await hooks["chat.message"]({ sessionID: "s" }, message)
const tool = { output: "ran" }
await hooks["tool.execute.after"]({ sessionID: "s" }, tool)
const quiet = { output: "ran" }
await hooks["tool.execute.after"]({ sessionID: "inner" }, quiet)
await event("session.compacted", "s")
await event("session.idle", "s")
await event("session.idle", "inner")
console.log(JSON.stringify({ parts: message.parts, tool, quiet, prompted }))
"""


@pytest.mark.needs("node")
def test_the_plugin_shows_what_the_hook_prints(tmp_path: Path) -> None:
    """Opencode's own events; the command is one that prints its event and its session."""
    script = tmp_path / "hook.py"
    script.write_text(
        "import json, sys\n"
        "text = f\"{sys.argv[-1]} {json.load(sys.stdin)['session_id']}\"\n"
        "print(json.dumps({'text': text}))\n"
    )
    plugin = with_hooks(None, "opencode", HookCall(sys.executable))
    words = json.dumps([sys.executable, str(script)])
    assert json.dumps([sys.executable, "hook", "opencode"]) in plugin
    changed = plugin.replace(json.dumps([sys.executable, "hook", "opencode"]), words)
    (tmp_path / "cacp.mjs").write_text(changed)
    (tmp_path / "play.mjs").write_text(PLAY)
    done = subprocess.run(
        ["node", str(tmp_path / "play.mjs")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    shown = json.loads(done.stdout)
    assert shown["parts"][1] == {
        "id": "prt_1cacp",
        "sessionID": "s",
        "messageID": "m",
        "type": "text",
        "text": "chat.message s",
        "synthetic": True,
    }
    assert shown["tool"]["output"] == "ran\n\ntool.execute.after s"
    assert shown["quiet"]["output"] == "ran", "a subagent is shown nothing"
    part = {"type": "text", "text": "session.idle s", "synthetic": True}
    assert shown["prompted"] == [{"path": {"id": "s"}, "body": {"parts": [part]}}]
