"""The command lines of the reference CLIs (agent-threader-v2 §9). Runs are in test_acceptance."""

from pathlib import Path
from typing import Any

import pytest

from schemas.manifest import AdapterSpec
from threader.adapters import make_adapter
from threader.adapters.base import MAX_ARGUMENT, AdapterHealth, PreparedInvocation, RunContext


def context(tmp_path: Path, prompt: str = "Do it.") -> RunContext:
    (tmp_path / "prompt.md").write_text(prompt)
    return RunContext(
        task_id="A",
        cwd=tmp_path,
        staging=tmp_path,
        prompt_path=tmp_path / "prompt.md",
        log_path=tmp_path / "log",
        timeout_sec=5,
        max_log_bytes=1 << 20,
        marker="m",
        environ={"PATH": "/bin"},
    )


def prepare(tmp_path: Path, **spec: Any) -> PreparedInvocation:
    adapter = make_adapter(AdapterSpec.model_validate(spec))
    return adapter.prepare(context(tmp_path))


@pytest.mark.parametrize(
    ("spec", "argv", "stdin"),
    [
        ({"adapter": "command", "command": ["./w", "-x"], "args": ["y"]}, "./w -x y", True),
        ({"adapter": "claude"}, "claude -p --output-format text", True),
        (
            {"adapter": "claude", "output": "stream-json", "model": "opus", "args": ["--x"]},
            "claude -p --output-format stream-json --verbose --model opus --x",
            True,
        ),
        (
            {"adapter": "claude", "output": "json", "prompt": "argument"},
            "claude -p --output-format json Do it.",
            False,
        ),
        (
            {"adapter": "agent", "model": "m"},
            "agent -p --output-format text --trust --model m Do it.",
            False,
        ),
        ({"adapter": "opencode"}, "opencode run --format default", True),
        (
            {"adapter": "opencode", "output": "json", "model": "a/b"},
            "opencode run --format json --model a/b",
            True,
        ),
    ],
)
def test_command_lines(tmp_path: Path, spec: dict[str, Any], argv: str, stdin: bool) -> None:
    prepared = prepare(tmp_path, **spec)
    assert " ".join(prepared.argv) == argv
    assert (prepared.stdin_path is not None) == stdin


def test_a_prompt_too_long_for_an_argument_goes_through_its_file(tmp_path: Path) -> None:
    adapter = make_adapter(AdapterSpec(adapter="agent"))
    prepared = adapter.prepare(context(tmp_path, "x" * (MAX_ARGUMENT + 1)))
    assert prepared.argv[-1] == f"Read the file {tmp_path / 'prompt.md'} and do what it says."


def test_the_environment_names_task_and_staging(tmp_path: Path) -> None:
    env = prepare(tmp_path, adapter="command", command=["w"], env={"MINE": "1"}).env
    assert (env["CACP_TASK_ID"], env["MINE"], env["PATH"]) == ("A", "1", "/bin")
    assert env["CACP_STAGING_DIR"] == str(tmp_path)


def test_health(tmp_path: Path) -> None:
    def health(environ: dict[str, str], **spec: Any) -> AdapterHealth:
        adapter = make_adapter(AdapterSpec.model_validate(spec))
        return adapter.healthcheck(environ, tmp_path)

    path = {"PATH": "/bin:/usr/bin"}
    assert not health(path, adapter="claude", command=["/no/claude"]).ready
    assert "must give a command" in health({}, adapter="command").details[0]
    assert health(path, adapter="command", command=["sh"]).ready
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    assert not health(path, adapter="command", command=["./mine"]).ready
    (tmp_path / "mine").chmod(0o755)
    assert health(path, adapter="command", command=["./mine"]).ready
