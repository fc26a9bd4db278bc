"""`cacp hook` with its options (acp-canonical §11)."""

import json
from pathlib import Path

import pytest

from cli.hook import EVENTS
from tests.cli.run import cacp
from tests.support.mail_agent import agent
from tests.support.node import Node
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("name", EVENTS)
def test_hooks_are_installed_once_and_taken_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = cacp("hook", name, "--install", "--print", url="http://n:1")
    assert all(event in printed.stdout for event in EVENTS[name])
    assert "http://n:1" in printed.stdout
    assert list(tmp_path.iterdir()) == []
    assert "Added the hooks" in cacp("hook", name, "--install", url="http://n:1").stderr
    assert "already" in cacp("hook", name, "--install", url="http://n:1").stderr
    assert "Took the hooks out" in cacp("hook", name, "--uninstall").stderr
    assert "no hooks of ours" in cacp("hook", name, "--uninstall").stderr
    assert list(tmp_path.iterdir()) == []


def test_wrong_usage_and_wrong_files_are_told(tmp_path: Path) -> None:
    assert cacp("hook", "cursor", "--install").exit_code == 2
    assert "exclude each other" in cacp("hook", "claude", "--install", "--check").stderr
    (tmp_path / "broken.json").write_text("{")
    for change in ("--install", "--uninstall"):
        broken = cacp("hook", "codex", change, "--file", str(tmp_path / "broken.json"))
        assert (broken.exit_code, broken.stdout) == (1, "")
        assert "is not changed: line 1" in broken.stderr


def test_a_check_says_what_is_wrong(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    none = cacp("hook", "codex", "--check")
    assert (none.exit_code, "cacp hook codex --install" in none.stdout) == (1, True)
    cacp("hook", "codex", "--install", url="http://127.0.0.1:1")
    assert "cacp serve" in cacp("hook", "codex", "--check").stdout


def test_a_hook_may_be_run_as_any_command(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    bert = agent(node, "bert")
    sent = agent(node, "anna").send(bert)["message"]["id"]
    words = ("hook", "claude", "PostToolUse", "--key", bert.key)
    shown = cacp(*words, stdin="{}", url=node.url, hook_seconds=str(PATIENCE))
    assert sent in json.loads(shown.stdout)["hookSpecificOutput"]["additionalContext"]
