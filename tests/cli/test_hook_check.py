"""`cacp hook --check`: a hook that shows nothing says nothing; this says why."""

import shutil
from pathlib import Path

import pytest

from cli import hook_check
from cli.file_edit import apply
from cli.hook_check import hook_checks
from cli.hook_install import install
from server.domain.doctor_check import DoctorCheck
from tests.support.mail_agent import agent
from tests.support.node import Node, free_port


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of settings, in a home and a folder that have none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("CACP_KEY", raising=False)
    return tmp_path / "settings.json"


def checked(settings: Path, agent_name: str = "claude") -> dict[str, DoctorCheck]:
    checks = {check.name: check for check in hook_checks(agent_name, settings)}
    for check in checks.values():
        assert bool(check.remedy) == (check.state != "ok")
    return checks


def test_hooks_that_work(node: Node, settings: Path, tmp_path: Path) -> None:
    bert = agent(node, "bert")
    key = tmp_path / "key"
    key.write_text(bert.key)
    apply(install("codex", file=settings, url=node.url, key_file=key))
    checks = checked(settings, "codex")
    assert {check.state for check in checks.values()} <= {"ok", "warning"}, "a slow machine"
    assert bert.address in checks["node"].finding
    assert "ms" in checks["hook"].finding
    assert "/hooks" in checks["trust"].finding
    key.write_text("cacp_sk_" + "x" * 24)
    refused = checked(settings, "codex")["node"]
    assert (refused.state, "unknown" in refused.finding) == ("broken", True)
    assert "--key-file" in refused.remedy
    key.unlink()
    assert "can't be read" in checked(settings, "codex")["key"].finding


def test_hooks_that_are_not_there_or_not_all(settings: Path) -> None:
    assert [check.state for check in hook_checks("claude", None)] == ["broken"]
    settings.write_text('{"hooks": {"Stop": [{"hooks": [{"command": "cacp hook claude Stop"}]}]}}')
    missing = checked(settings)["settings"]
    assert (missing.state, "SessionStart" in missing.finding) == ("warning", True)
    settings.write_text("{")
    assert "line 1: should have a name" in checked(settings)["settings"].finding


def test_a_node_that_is_down(settings: Path) -> None:
    apply(install("claude", file=settings, url=f"http://127.0.0.1:{free_port()}"))
    assert checked(settings)["node"].remedy.startswith("start it")
    apply(install("claude", file=settings, url="nonsense"))
    assert "not the URL of a node" in checked(settings)["node"].finding


def test_a_command_that_is_gone_or_older(
    settings: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(install("claude", file=settings, url=node.url))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda name: None)
        assert "not there" in checked(settings)["command"].finding
    text = settings.read_text()
    settings.write_text(text.replace(" --url", " --former"))
    assert "options" in checked(settings)["command"].finding
    settings.write_text(text)
    monkeypatch.setattr(hook_check, "GOOD_SECONDS", 0)
    assert checked(settings)["hook"].state == "warning"
