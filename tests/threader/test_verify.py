"""Verification (agent-threader-v2 §8)."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from schemas.verify_profile import VerifyProfile
from threader.outcome import Failure
from threader.verify import VerifyContext, base_environment, verify


def check(tmp_path: Path, *steps: dict[str, Any], **fields: Any) -> Failure | None:
    listed = [{"timeout_sec": 10, **step} for step in steps]
    profile = VerifyProfile.model_validate({"steps": listed, **fields})
    return asyncio.run(
        verify(profile, VerifyContext(tmp_path, tmp_path / "log", "m", 1 << 30, os.environ))
    )


def test_smoke_runs_last_and_only_after_the_others(tmp_path: Path) -> None:
    smoke = {"name": "smoke", "cmd": "echo smoke >> order"}
    build = {"name": "build", "cmd": "echo build >> order"}
    assert check(tmp_path, smoke, build) is None
    assert (tmp_path / "order").read_text() == "build\nsmoke\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("build", "build_error"), ("lint", "build_error"), ("tests", "test_error"),
     ("browser", "smoke_error")],
)  # fmt: skip
def test_the_failing_step_gives_the_class(tmp_path: Path, name: str, expected: str) -> None:
    failure = check(tmp_path, {"name": name, "cmd": "echo 'error: bad thing'; exit 2"})
    assert failure == Failure(expected, f"{name} error: bad thing")
    assert "exit code 2" in (tmp_path / "log").read_text()


def test_steps_have_their_time(tmp_path: Path) -> None:
    failure = check(tmp_path, {"name": "test", "cmd": "sleep 60", "timeout_sec": 0.2})
    assert failure == Failure("test_error", "test timed_out")


def test_the_environment_is_the_operators(tmp_path: Path) -> None:
    profile = VerifyProfile.model_validate({"inherit_env": ["KEEP"], "env": {"ADD": "1"}})
    environ = {"KEEP": "k", "SECRET": "s", "PATH": "/bin"}
    assert base_environment(profile, environ) == {"KEEP": "k", "ADD": "1"}
    bare = VerifyProfile.model_validate({"inherit_env": False})
    assert base_environment(bare, environ) == {"PATH": "/bin"}
    step = {"name": "build", "cmd": 'test "$A$B" = 12', "env": {"B": "2"}}
    assert check(tmp_path, step, env={"A": "1"}) is None
