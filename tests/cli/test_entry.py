"""The entry point: a hook starts without the other commands."""

import resource
import subprocess
import sys

import pytest

from tests.cli.run import ROOT, environment_of

HEAVY = ("typer", "rich", "pydantic", "httpx", "asyncio", "server", "http", "email", "ssl")


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
def test_a_hook_takes_less_than_100_ms_of_the_processor() -> None:
    best = min(_seconds_of_hook() for _ in range(5))
    assert best < 0.1


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
