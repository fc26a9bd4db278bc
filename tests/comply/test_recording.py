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

from comply.agent import StdioTarget
from comply.files import Case
from comply.lint import lint
from comply.recording import Said, relay, to_test
from comply.result import Verdict
from comply.run import run_case
from comply.settings import AgentServer
from comply.source import read
from comply.target import SubjectUnreachable
from tests.support.waiting import PATIENCE, eventually

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
    assert [problem.text for problem in lint(text, tmp_path) if problem.level == "error"] == []
    assert "/home/me/project" not in text
    assert '"sessionId": "${sessionId}"' in text
    case = Case("hello", "s", Path("hello.jsont"), read(text))
    result = asyncio.run(run_case(case, StdioTarget("agent", SERVER), 30))
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


def test_an_agent_that_does_not_start_is_said() -> None:
    with (
        Path(os.devnull).open("rb") as nothing,
        pytest.raises(SubjectUnreachable, match="can't start /no/x"),
    ):
        asyncio.run(relay(AgentServer(command="/no/x"), nothing, io.BytesIO()))


def said(*messages: Any) -> list[Said]:
    """Messages by turns, each with who said it: `>` the editor, `<` the agent."""
    return [(who == ">", {"jsonrpc": "2.0", **message}) for who, message in messages]


OPENING = {"id": 1, "method": "session/new", "params": {"cwd": "/home/me", "mcpServers": []}}
ASKING = {"id": "a", "method": "session/request_permission", "params": {"options": []}}
OUTCOME = {"outcome": {"outcome": "selected", "optionId": "yes"}}
READING = {"id": "b", "method": "fs/read_text_file", "params": {"path": "/home/me/a.txt"}}
PROMPT = {"id": 2, "method": "session/prompt", "params": {"sessionId": "s-1", "prompt": []}}


def test_a_recording_has_the_form_that_other_runners_read() -> None:
    """The specification's steps and regexes of ECMAScript; no captures, which it does not have."""
    test = json.loads(
        to_test(
            said(
                (">", frame(0, "initialize", protocolVersion=1, clientCapabilities={"fs": {}})),
                ("<", {"id": 0, "result": {"protocolVersion": 1}}),
                (">", OPENING),
                ("<", {"id": 1, "result": {"sessionId": "s-1"}}),
                (">", PROMPT),
                ("<", ASKING),
                (">", {"id": "a", "result": OUTCOME}),
                ("<", READING),
                (">", {"id": "b", "result": {"content": "x"}}),
                ("<", {"method": "session/update", "params": {}}),
                ("<", {"id": 2, "result": {"stopReason": "end_turn", "text": "a/b (c) /home/me"}}),
            ),
            "Hello",
        )
    )
    assert test["init"] == {"clientCapabilities": {"fs": {}}}
    assert test["steps"] == [
        {"newSession": {"mcpServers": [], "capture": "sessionId"}},
        {
            "send": {
                "jsonrpc": "2.0",
                **PROMPT,
                "params": {"sessionId": "${sessionId}", "prompt": []},
            }
        },
        {
            "expect": {
                "timeoutMs": 60000,
                "messages": [
                    {
                        "clientRequest": {
                            "method": "^session/request_permission$",
                            "reply": {"result": OUTCOME},
                        }
                    },
                    {"clientRequest": {"method": "^fs/read_text_file$"}},
                    {"notification": {"method": "^session/update$"}},
                    {
                        "response": {
                            "jsonrpc": r"^2\.0$",
                            "id": 2,
                            "result": {
                                "stopReason": "^end_turn$",
                                "text": r"^a/b \(c\) ${sandbox}$",
                            },
                        }
                    },
                ],
            }
        },
    ]


def test_a_refusal_that_was_recorded_is_expected() -> None:
    """Other runners take an error for a failure unless the frame says that it is wanted."""
    text = to_test(
        said(
            (">", OPENING),
            ("<", {"id": 1, "result": {"sessionId": "s-1"}}),
            (">", PROMPT),
            ("<", {"id": 2, "error": {"code": -32602, "message": "No"}}),
        ),
        "Refused",
    )
    assert json.loads(text)["steps"][1]["send"]["expectError"] is True
