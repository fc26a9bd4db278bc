"""`cacp inbox`, `cacp send` and `cacp hook --install` (acp-canonical §11)."""

import json
import threading
from pathlib import Path

import pytest

from tests.cli.run import cacp
from tests.mail import Agent, agent
from tests.node import Node, free_port
from tests.pushing import Pushing


def test_mail_from_shell_to_shell(node: Node, anna: Agent, bert: Agent) -> None:
    sent = cacp(
        "send", bert.id, "-m", "the users table", "--type", "status.blocked", "--priority", "high",
        "--payload", '{"blocked_on": "no\\u001b[31m schema"}', "--topic", "db",
        url=node.url, key=anna.key,
    )  # fmt: skip
    assert sent.exit_code == 0, sent.output
    id = sent.stdout.strip()
    shown = cacp("inbox", url=node.url, key=bert.key)
    assert id in shown.stdout
    assert "```untrusted" in shown.stdout
    assert "\x1b" not in shown.stdout
    listed = json.loads(cacp("inbox", "--json", url=node.url, key=bert.key).stdout)
    (message,) = listed["messages"]
    assert (message["topic"], message["priority"]) == ("db", "high")
    assert message["payload"]["summary"] == "the users table"
    acked = cacp("inbox", "--ack", id, url=node.url, key=bert.key)
    assert "No messages wait for you" in acked.stdout
    wrong = cacp("inbox", "--ack", "no-such-id", "--wait", "0.05", url=node.url, key=bert.key)
    assert (wrong.exit_code, "no-such-id" in wrong.stderr) == (1, True)
    assert id in cacp("inbox", "--all", url=node.url, key=bert.key).stdout
    after = cacp("inbox", "--all", "--cursor", listed["cursor"], url=node.url, key=bert.key)
    assert id not in after.stdout


def test_waiting_ends_when_something_comes(node: Node, anna: Agent, bert: Agent) -> None:
    later = threading.Timer(0.3, lambda: anna.send(bert))
    later.start()
    found = cacp("inbox", "--wait", "20", "--json", url=node.url, key=bert.key)
    later.join()
    assert len(json.loads(found.stdout)["messages"]) == 1
    empty = cacp("inbox", "--wait", "0.05", "--json", url=node.url, key=anna.key)
    assert json.loads(empty.stdout)["messages"] == []


def test_what_waits_for_a_human_says_so(node: Node, anna: Agent, bert: Agent) -> None:
    sent = cacp("send", bert.id, "-m", "m", "--gate", url=node.url, key=anna.key)
    assert sent.exit_code == 0
    assert "cacp approve" in sent.stderr


def test_what_is_refused_is_one_line(node: Node, anna: Agent) -> None:
    refused = cacp("send", "aid://example.com/nobody", "-m", "m", url=node.url, key=anna.key)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    wrong = cacp("send", anna.id, "-m", "m", "--payload", "[1]", url=node.url, key=anna.key)
    assert wrong.exit_code == 2
    gone = cacp("inbox", url=f"http://127.0.0.1:{free_port()}")
    assert gone.exit_code == 3


def test_hooks_are_installed_once(
    pushing: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    assert "Entered the hooks" in first.stderr
    assert "doesn't offer" not in first.stderr
    file = tmp_path / ".claude" / "settings.local.json"
    assert f"--url {pushing.url}" in file.read_text()
    assert "already" in cacp("hook", "claude", "--install", url=pushing.url).stderr


def test_an_install_says_what_is_missing_at_the_node(node: Node, tmp_path: Path) -> None:
    file = str(tmp_path / "hooks.json")
    off = cacp("hook", "codex", "--install", "--file", file, url=node.url)
    assert "CACP_ACP_SESSION_INJECTION" in off.stderr
    away = cacp("hook", "codex", "--install", "--file", file, url="http://127.0.0.1:1")
    assert "doesn't answer yet" in away.stderr
    (tmp_path / "broken.json").write_text("{")
    broken = cacp("hook", "codex", "--install", "--file", str(tmp_path / "broken.json"))
    assert (broken.exit_code, broken.stdout) == (1, "")
    assert cacp("hook", "cursor", "--install").exit_code == 2


def test_a_hook_may_be_run_as_any_command(pushing: Pushing) -> None:
    bert = agent(pushing, "bert")
    sent = agent(pushing, "anna").send(bert)["message"]["id"]
    said = cacp("hook", "claude", "PostToolUse", "--key", bert.key, stdin="{}", url=pushing.url)
    assert sent in json.loads(said.stdout)["hookSpecificOutput"]["additionalContext"]
