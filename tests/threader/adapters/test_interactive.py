"""Terminals (agent-threader-v2 §9 "Interactive CLIs"). A whole run is in test_acceptance."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from schemas.manifest import AdapterSpec
from tests.threader.adapters.test_cli import context
from tests.threader.projects import result_block
from threader.adapters.base import ExecutionArtifact
from threader.adapters.interactive import InteractiveAdapter, plain
from threader.outcome import Ending
from threader.parsing import Parsed


def play(
    tmp_path: Path, script: str, **fields: Any
) -> tuple[InteractiveAdapter, ExecutionArtifact]:
    (tmp_path / "cli.py").write_text("import sys, time\n" + script)
    spec = {
        "adapter": "interactive",
        "command": [sys.executable, str(tmp_path / "cli.py")],
        "idle_sec": 0.5,
        "max_rescues": 1,
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
    assert isinstance(adapter.extract_result(artifact, context(tmp_path)), Parsed)


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
