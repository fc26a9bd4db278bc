"""Runs a task's verification profile; only the runner decides the verdict (agent-threader-v2 §8).

The first layer, after parsing, is `writes.plan_writes`. This module has the other two: build, test
and lint steps after the writes, then the smoke steps.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from schemas.v2 import FailureClass
from schemas.verify_profile import VerifyProfile, VerifyStep
from threader.files import tail
from threader.outcome import Ending, Failure
from threader.process import MARKER, run_process
from threader.signatures import primary_signal

_CLASSES = {
    "build": FailureClass.BUILD_ERROR,
    "lint": FailureClass.BUILD_ERROR,
    "test": FailureClass.TEST_ERROR,
    "smoke": FailureClass.SMOKE_ERROR,
}


@dataclass(frozen=True)
class VerifyContext:
    """Where and how a verification runs."""

    cwd: Path
    log_path: Path
    marker: str
    max_log_bytes: int
    environ: Mapping[str, str]


def base_environment(profile: VerifyProfile, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the steps: what the profile lets them inherit, and its own variables.
    Probes find `cacp` last on the PATH."""
    if profile.inherit_env is True:
        kept = dict(environ)
    else:
        names = ["PATH", "HOME"] if profile.inherit_env is False else profile.inherit_env
        kept = {name: environ[name] for name in names if name in environ}
    environment = {**kept, **profile.env}
    if any(step.probe is not None for step in profile.steps):
        folders = (environment.get("PATH"), str(Path(sys.prefix, "bin")))
        environment["PATH"] = os.pathsep.join(filter(None, folders))
    return environment


def in_order(profile: VerifyProfile) -> list[VerifyStep]:
    """The steps as they run: smoke steps last."""
    return sorted(profile.steps, key=lambda step: step.layer == "smoke")


def _command(step: VerifyStep) -> str:
    assert step.cmd is not None, "threader.probe_step makes commands of probes"
    return step.cmd


def script_of(profile: VerifyProfile) -> str:
    """A script for /bin/sh that runs the steps of a profile and ends with the first that fails, to
    be run in `base_environment`. Time limits are left out."""
    lines = []
    for step in in_order(profile):
        given = "".join(f"{name}={shlex.quote(value)} " for name, value in step.env.items())
        place, command = shlex.quote(step.cwd), shlex.quote(_command(step))
        lines.append(f"(cd {place} && {given}/bin/sh -c {command}) || exit $?")
    return "\n".join(lines)


async def _run_step(step: VerifyStep, env: dict[str, str], check: VerifyContext) -> Failure | None:
    with check.log_path.open("ab") as log:
        log.write(f"\n=== {step.name}: {_command(step)}\n".encode())
        start = log.tell()
    ended = await run_process(
        ["/bin/sh", "-c", _command(step)],
        cwd=check.cwd / step.cwd,
        env={**env, **step.env, MARKER: check.marker},
        log_path=check.log_path,
        timeout_sec=step.timeout_sec,
        max_log_bytes=check.max_log_bytes,
    )
    with check.log_path.open("ab") as log:
        result = f"exit code {ended.exit_code}" if ended.ending is Ending.EXITED else ended.ending
        log.write(f"=== {step.name}: {result} after {ended.duration_sec:.1f} s\n".encode())
        written = log.tell() - start
    if ended.ending is Ending.EXITED and ended.exit_code == 0:
        return None
    if ended.ending is not Ending.EXITED:
        return Failure(_CLASSES[step.layer], f"{step.name} {ended.ending}")
    own = tail(check.log_path, min(written, 64 * 1024)).rpartition("\n=== ")[0]
    return Failure(_CLASSES[step.layer], f"{step.name} {primary_signal(own)}")


async def verify(profile: VerifyProfile, check: VerifyContext) -> Failure | None:
    """The first failing step's failure, or None when the profile passes."""
    env = base_environment(profile, check.environ)
    for step in in_order(profile):
        failure = await _run_step(step, env, check)
        if failure is not None:
            return failure
    return None
