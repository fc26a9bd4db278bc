"""Terminals (agent-threader-v2 §9 "Interactive CLIs"). A whole run is in test_acceptance."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.manifest import AdapterSpec
from tests.threader.adapters.test_cli import context
from tests.threader.projects import result_block
from threader.adapters.base import ExecutionArtifact, RunContext
from threader.adapters.interactive import InteractiveAdapter, is_ready, plain
from threader.outcome import Ending
from threader.parsing import Fence, ParsedContract


def play(
    tmp_path: Path, script: str, **fields: Any
) -> tuple[InteractiveAdapter, ExecutionArtifact]:
    (tmp_path / "cli.py").write_text("import sys, time\n" + script)
    spec = {
        "adapter": "interactive",
        "command": [sys.executable, str(tmp_path / "cli.py")],
        "idle_sec": 0.5,
        "max_rescues": 1,
        "ready_sec": 0.5,
        **fields,
    }
    adapter = InteractiveAdapter(AdapterSpec.model_validate(spec))
    ctx = context(tmp_path)
    return adapter, asyncio.run(adapter.execute(adapter.prepare(ctx), ctx))


def test_silence_is_bounded_and_rescues_are_counted(tmp_path: Path) -> None:
    script = "n = 0\nwhile True:\n    input(); n += 1; open('n', 'w').write(str(n))\n"
    _, artifact = play(tmp_path, script)
    assert artifact.exit.ending is Ending.IDLE
    assert (tmp_path / "n").read_text() == "2", "the prompt and one rescue"


def test_a_question_that_comes_again_and_again_ends(tmp_path: Path) -> None:
    script = "while True:\n    input('Allow? ')\n"
    _, artifact = play(tmp_path, script, rescues={"Allow?": "n\r"}, max_rescues=3)
    assert artifact.exit.ending is Ending.IDLE
    assert artifact.log_path.read_text().count("Allow?") == 4


def test_done_when_the_contract_is_complete_though_the_cli_stays(tmp_path: Path) -> None:
    (tmp_path / "block").write_text(result_block("A"))
    script = "input(); print('\\x1b[31m' + open('block').read(), flush=True); time.sleep(60)\n"
    adapter, artifact = play(tmp_path, script)
    assert (artifact.exit.ending, artifact.exit.exit_code) == (Ending.EXITED, 0)
    assert isinstance(adapter.extract_result(artifact, context(tmp_path)), ParsedContract)


def test_a_cli_that_exits_by_itself(tmp_path: Path) -> None:
    _, artifact = play(tmp_path, "print('bye'); sys.exit(4)\n")
    assert (artifact.exit.ending, artifact.exit.exit_code) == (Ending.EXITED, 4)


def test_time_runs_out_and_starts_fail_here_too(tmp_path: Path) -> None:
    script = "while True:\n    print('busy', flush=True); time.sleep(0.1)\n"
    _, artifact = play(tmp_path, script, idle_sec=60)
    assert artifact.exit.ending is Ending.TIMED_OUT
    _, artifact = play(tmp_path, "", command=["/no/such/cli"])
    assert artifact.exit.ending is Ending.NOT_STARTED


def test_plain() -> None:
    assert plain(b"\x1b[1mone\x1b[0m\r\ntwo\rthree\xff") == "one\ntwo\nthree\ufffd".encode()


SLOW = """
import termios
time.sleep(1)
termios.tcflush(0, termios.TCIFLUSH)
print({shown!r}, flush=True)
time.sleep({then})
termios.tcflush(0, termios.TCIFLUSH)
print('> ', end='', flush=True)
assert "Read the file" in input()
print(open('block').read(), flush=True)
time.sleep(60)
"""
"""A program that takes over the terminal only after a while, and forgets what was typed before."""


def test_the_prompt_waits_until_something_was_shown(tmp_path: Path) -> None:
    (tmp_path / "block").write_text(result_block("A"))
    script = SLOW.format(shown="", then=0)
    _, artifact = play(tmp_path, script, ready_sec=60, idle_sec=60)
    assert artifact.exit.ending is Ending.EXITED


def test_the_prompt_waits_for_the_pattern(tmp_path: Path) -> None:
    (tmp_path / "block").write_text(result_block("A"))
    script = SLOW.format(shown="Loading", then=2)
    _, artifact = play(tmp_path, script, ready=r"(?m)^> $", ready_sec=60, idle_sec=60)
    assert artifact.exit.ending is Ending.EXITED


@pytest.mark.parametrize(
    ("screen", "quiet", "waited", "fields", "expected"),
    [
        ("", 9, 9, {}, False),
        (" \n", 9, 9, {}, False),
        ("Welcome", 0.3, 9, {}, False),
        ("Welcome", 1, 1, {}, True),
        ("Welcome", 9, 9, {"ready": "> "}, False),
        ("Welcome\n> ", 0.3, 1, {"ready": "> "}, True),
        ("", 60, 60, {}, True),
        ("Welcome", 9, 60, {"ready": "> "}, True),
    ],
)
def test_readiness(
    screen: str, quiet: float, waited: float, fields: dict[str, Any], expected: bool
) -> None:
    spec = AdapterSpec.model_validate({"adapter": "interactive", **fields})
    assert is_ready(screen, spec, quiet=quiet, waited=waited) is expected


HOPELESS = {"ready": "(?:a|aa)+$"}
"""Takes for ever on a screen full of one letter and another behind it."""


def test_a_pattern_that_takes_too_long_is_given_up_and_said_so(tmp_path: Path) -> None:
    (tmp_path / "block").write_text(result_block("A"))
    script = "print('a' * 9000 + '!'); input(); print(open('block').read(), flush=True)\n"
    _, artifact = play(tmp_path, script, ready_sec=1.5, idle_sec=60, **HOPELESS)
    assert artifact.exit.ending is Ending.EXITED
    log = artifact.log_path.read_text()
    assert log.count("the pattern `ready` takes too long on this screen") == 1


def test_what_was_looked_through_is_not_looked_through_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def complete(self: InteractiveAdapter, ctx: RunContext, fence: Fence) -> bool:
        looked.append(ctx.log_path.stat().st_size)
        return False

    monkeypatch.setattr(InteractiveAdapter, "_complete", complete)
    _, artifact = play(tmp_path, "print('>', flush=True); time.sleep(60)\n", idle_sec=2)
    assert artifact.exit.ending is Ending.IDLE
    assert len(looked) == len(set(looked))


def test_a_pattern_must_be_one() -> None:
    with pytest.raises(ValidationError, match="is no regular expression"):
        AdapterSpec.model_validate({"adapter": "interactive", "ready": "("})
