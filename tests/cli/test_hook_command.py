"""`cacp hook` with its options (acp-canonical §11)."""

import json
from pathlib import Path

import pytest

from tests.cli.run import cacp
from tests.support.mail_agent import agent
from tests.support.node import Node
from tests.support.pushing_node import PushingNode


def test_hooks_are_installed_once(
    pushing: PushingNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = cacp("hook", "claude", "--install", "--print", url=pushing.url)
    assert set(json.loads(printed.stdout)["hooks"]) == {
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "Stop",
    }
    assert list(tmp_path.iterdir()) == []
    first = cacp("hook", "claude", "--install", url=pushing.url)
    assert "Added the hooks" in first.stderr
    assert "doesn't show mail" not in first.stderr
    file = tmp_path / ".claude" / "settings.local.json"
    assert f"--url {pushing.url}" in file.read_text()
    assert "already" in cacp("hook", "claude", "--install", url=pushing.url).stderr


def test_an_install_says_what_the_node_still_needs(node: Node, tmp_path: Path) -> None:
    file = str(tmp_path / "hooks.json")
    off = cacp("hook", "codex", "--install", "--file", file, url=node.url)
    assert "CACP_ACP_SESSION_INJECTION" in off.stderr
    away = cacp("hook", "codex", "--install", "--file", file, url="http://127.0.0.1:1")
    assert "doesn't answer yet" in away.stderr
    (tmp_path / "broken.json").write_text("{")
    broken = cacp("hook", "codex", "--install", "--file", str(tmp_path / "broken.json"))
    assert (broken.exit_code, broken.stdout) == (1, "")
    assert cacp("hook", "cursor", "--install").exit_code == 2


def test_a_hook_may_be_run_as_any_command(pushing: PushingNode) -> None:
    bert = agent(pushing, "bert")
    sent = agent(pushing, "anna").send(bert)["message"]["id"]
    said = cacp("hook", "claude", "PostToolUse", "--key", bert.key, stdin="{}", url=pushing.url)
    assert sent in json.loads(said.stdout)["hookSpecificOutput"]["additionalContext"]
