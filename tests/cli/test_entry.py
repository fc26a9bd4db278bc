"""The entry point: a hook starts without the other commands."""

import resource
import subprocess
import sys

import pytest

from cli.entry import DEFAULT_URL, hook_of
from tests.cli.run import ROOT, environment_of

HEAVY = ("typer", "rich", "pydantic", "httpx", "asyncio", "server")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["hook", "claude", "Stop"], ("claude", "Stop", DEFAULT_URL, None)),
        (["hook", "codex"], ("codex", None, DEFAULT_URL, None)),
        (
            ["hook", "claude", "Stop", "--url", "http://x:1"],
            ("claude", "Stop", "http://x:1", None),
        ),
        (["hook", "--url", "http://x:1", "codex"], ("codex", None, "http://x:1", None)),
        (["hook", "claude", "--install"], None),
        (["hook", "--help"], None),
        (["hook"], None),
        (["inbox"], None),
        ([], None),
    ],
)
def test_what_is_a_hook(words: list[str], asked: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACP_URL", raising=False)
    monkeypatch.delenv("CACP_KEY", raising=False)
    assert hook_of(words) == asked


def test_a_hook_takes_url_and_key_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACP_URL", "http://y:2")
    monkeypatch.setenv("CACP_KEY", "k")
    assert hook_of(["hook", "claude", "Stop"]) == ("claude", "Stop", "http://y:2", "k")


def test_a_hook_imports_little() -> None:
    """It runs at every turn of an agent."""
    code = (
        f"import sys, cli.entry, cli.hook; print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_other_commands_are_there_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cacp_launcher", "--version"],
        cwd=ROOT,
        env=environment_of(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("cacp ")


@pytest.mark.soak
def test_a_hook_takes_less_than_300_ms_of_the_processor() -> None:
    best = min(_seconds_of_hook() for _ in range(5))
    assert best < 0.3


def _seconds_of_hook() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "cacp_launcher", "hook", "claude", "PostToolUse"],
        cwd=ROOT,
        env=environment_of(url="http://127.0.0.1:1"),
        input=b"{}",
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
