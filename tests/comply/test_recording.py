"""A live session becomes a test that its agent passes."""

import asyncio
import io
import json
import os
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from comply.files import Case
from comply.recording import Said, relay, to_test
from comply.result import Verdict
from comply.run import Unreachable, run_case
from comply.settings import AgentServer
from comply.source import lint, read
from comply.stdio import StdioTarget
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
SERVER = AgentServer(
    command=sys.executable, args=["-m", "tests.comply.agent"], env={"PYTHONPATH": str(ROOT)}
)


def frame(id: int, method: str, **params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


SENT = [
    frame(0, "initialize", protocolVersion=1, clientCapabilities={}),
    frame(1, "session/new", cwd="/home/me/project", mcpServers=[]),
    frame(2, "session/prompt", sessionId="session-1", prompt=[{"type": "text", "text": "Hi."}]),
]


def recorded(folder: Path) -> list[Said]:
    """What was said while an editor sent SENT, a frame each time the last was answered."""
    out, into = os.pipe()
    answers = io.BytesIO()

    def is_answered(number: int) -> bool:
        return f'"id":{number}'.encode() in answers.getvalue().replace(b" ", b"")

    def edit() -> None:
        for number, one in enumerate(SENT):
            os.write(into, json.dumps(one).encode() + b"\n")
            eventually(partial(is_answered, number))
        os.close(into)

    editor = threading.Thread(target=edit)
    editor.start()
    with os.fdopen(out, "rb") as stream:
        said = asyncio.run(asyncio.wait_for(relay(SERVER, stream, answers), PATIENCE))
    editor.join()
    assert [message for sent, message in said if sent] == SENT
    assert len(answers.getvalue().splitlines()) == len(said) - len(SENT)
    return said


def test_the_agent_passes_the_test_that_was_recorded_of_it(tmp_path: Path) -> None:
    text = to_test(recorded(tmp_path), "Hello")
    assert [one.text for one in lint(text) if one.level == "error"] == []
    assert '"cwd": "${sandbox}"' in text
    assert '"sessionId": "${sessionId}"' in text
    case = Case("hello", "s", Path("hello.jsont"), read(text))
    result = asyncio.run(run_case(case, StdioTarget("agent", SERVER), 30))
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


def test_an_agent_that_does_not_start_is_said() -> None:
    with (
        Path(os.devnull).open("rb") as nothing,
        pytest.raises(Unreachable, match="can't start /no/x"),
    ):
        asyncio.run(relay(AgentServer(command="/no/x"), nothing, io.BytesIO()))
