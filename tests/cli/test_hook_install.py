"""Hooks are entered into an agent's settings once, and nothing else is changed."""

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

from cli import hook_install
from cli.hook import EVENTS
from cli.hook_install import file_of, install, merged

OWN: dict[str, Any] = {
    "model": "x",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": []}],
    },
}


def test_the_examples_hold() -> None:
    assert doctest.testmod(hook_install).failed == 0


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_every_event_gets_its_hook_once(agent: str) -> None:
    """Golden: the form that both agents take."""
    made = merged({}, agent, None)
    assert made["hooks"]["Stop"] == [
        {"hooks": [{"type": "command", "command": f"cacp hook {agent} Stop", "timeout": 10}]}
    ]
    assert tuple(made["hooks"]) == EVENTS
    assert merged(made, agent, None) == made


def test_what_was_there_stays() -> None:
    before = json.dumps(OWN)
    made = merged(OWN, "claude", None)
    assert json.dumps(OWN) == before
    assert made["model"] == "x"
    assert made["hooks"]["PreToolUse"] == OWN["hooks"]["PreToolUse"]
    assert made["hooks"]["Stop"][0] == OWN["hooks"]["Stop"][0]
    assert len(made["hooks"]["Stop"]) == 2


def test_another_url_takes_the_place_of_the_one_before() -> None:
    made = merged(merged({}, "claude", None), "claude", "http://n.example/$(x)")
    (group,) = made["hooks"]["Stop"]
    assert group["hooks"][0]["command"] == "cacp hook claude Stop --url 'http://n.example/$(x)'"


@pytest.mark.parametrize("settings", [{"hooks": []}, {"hooks": {"Stop": {}}}])
def test_settings_of_another_form_are_left_alone(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="hooks"):
        merged(settings, "claude", None)


def test_a_file_is_backed_up_and_changed_once(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "settings.json"
    assert install(file, "claude", None) == (True, None)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(json.dumps(OWN))
    file.chmod(0o640)
    changed, backup = install(file, "claude", None)
    assert changed
    assert backup == file.with_name("settings.json.bak")
    assert json.loads(backup.read_text()) == OWN
    assert file.stat().st_mode & 0o777 == 0o640
    assert json.loads(file.read_text()) == merged(OWN, "claude", None)
    assert install(file, "claude", None) == (False, None)


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_a_file_that_holds_no_settings_is_not_touched(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        install(file, "claude", None)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "settings.json"
    real.write_text("{}")
    link.symlink_to(real)
    install(link, "codex", None)
    assert link.is_symlink()
    assert "hooks" in json.loads(real.read_text())


def test_files_are_the_agents_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert file_of("claude", user=False) == Path(".claude/settings.local.json")
    assert file_of("codex", user=False) == Path(".codex/hooks.json")
    assert file_of("claude", user=True) == tmp_path / "settings.json"
    assert file_of("codex", user=True) == Path.home() / ".codex" / "hooks.json"
