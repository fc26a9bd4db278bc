"""The Agent Client Protocol adapter (§9). A whole run is in test_acceptance."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from schemas.manifest import AdapterSpec
from tests.threader.adapters.test_cli import context
from threader.adapters.acp import AcpAdapter, AcpClient
from threader.adapters.base import ExecutionArtifact
from threader.outcome import Ending


def play(tmp_path: Path, script: str) -> ExecutionArtifact:
    (tmp_path / "agent.py").write_text(script)
    spec = {"adapter": "acp", "command": [sys.executable, str(tmp_path / "agent.py")]}
    adapter = AcpAdapter(AdapterSpec.model_validate(spec))
    ctx = context(tmp_path)
    return asyncio.run(adapter.execute(adapter.prepare(ctx), ctx))


@pytest.mark.parametrize(
    "script",
    [
        "import sys; print('no JSON here', flush=True); sys.exit(3)",
        'import sys; sys.stdin.readline(); print(\'{"jsonrpc": "2.0", "id": 0, '
        '"error": {"code": -32000, "message": "no auth"}}\', flush=True); sys.stdin.read()',
    ],
)
def test_a_broken_agent_is_a_failed_exit(tmp_path: Path, script: str) -> None:
    artifact = play(tmp_path, script)
    assert (artifact.exit.ending, artifact.exit.exit_code) == (Ending.EXITED, 1)
    assert "the session failed" in artifact.log_path.read_text()


def test_a_silent_agent_runs_out_of_time(tmp_path: Path) -> None:
    assert play(tmp_path, "import time; time.sleep(60)").exit.ending is Ending.TIMED_OUT


def test_what_cannot_start(tmp_path: Path) -> None:
    adapter = AcpAdapter(AdapterSpec(adapter="acp", command=["/no/agent"]))
    ctx = context(tmp_path)
    artifact = asyncio.run(adapter.execute(adapter.prepare(ctx), ctx))
    assert artifact.exit.ending is Ending.NOT_STARTED


def test_the_agent_reads_inside_the_workspace_only(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "secret").write_text("s")
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    client = AcpClient(log, tmp_path / "work")
    answer = asyncio.run(client.read_text_file("s", "a.txt", line=2, limit=1))
    assert answer.content == "two\n"
    for path in ("../secret", str(tmp_path / "secret"), "missing"):
        with pytest.raises(Exception, match="Invalid params"):
            asyncio.run(client.read_text_file("s", path))
    os.close(log)
