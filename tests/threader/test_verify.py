"""Verification (agent-threader-v2 §8)."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schemas.verify_profile import VerifyProfile
from threader.outcome import Failure
from threader.verify import VerifyContext, base_environment, script_of, verify


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


def test_probes_find_cacp_last_on_the_path() -> None:
    step = {"name": "probe", "probe": {"base_url": "http://127.0.0.1:8000"}}
    profile = VerifyProfile.model_validate({"steps": [step]})
    own = str(Path(sys.executable).parent)
    assert base_environment(profile, {"PATH": "/bin"}) == {"PATH": f"/bin:{own}"}
    assert base_environment(profile, {}) == {"PATH": own}


@pytest.mark.parametrize(
    ("steps", "code", "printed"),
    [
        ([{"name": "smoke", "cmd": "echo s"}, {"name": "build", "cmd": "echo b"}], 0, "b s"),
        ([{"name": "build", "cmd": "echo b; exit 3"}, {"name": "test", "cmd": "echo t"}], 3, "b"),
        ([{"name": "test", "cmd": "echo $WHO 'it''s'", "env": {"WHO": "a b"}}], 0, "a b its"),
        ([{"name": "test", "cmd": "pwd", "cwd": "in side"}], 0, "in side"),
        ([{"name": "test", "cmd": "exit 1 || true"}], 1, ""),
        ([{"name": "test", "cmd": "echo t", "cwd": "nowhere"}], 2, ""),
    ],
)
def test_a_profile_as_one_script_ends_with_the_first_step_that_fails(
    tmp_path: Path, steps: list[dict[str, Any]], code: int, printed: str
) -> None:
    (tmp_path / "in side").mkdir()
    script = script_of(VerifyProfile.model_validate({"steps": steps}))
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    shown = done.stdout.replace(f"{tmp_path}/", "").split("\n")
    assert (bool(done.returncode), " ".join(shown).strip()) == (bool(code), printed)
    if code > 2:
        assert done.returncode == code


def test_the_script_of_a_profile_runs_its_steps_and_no_part_of_their_names(tmp_path: Path) -> None:
    step = {"name": "build\ntouch named", "cmd": "touch built"}
    profile = VerifyProfile.model_validate({"steps": [step]})
    subprocess.run(["/bin/sh", "-c", script_of(profile)], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["built"]
