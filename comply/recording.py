"""Turns a live session into a test to edit: passes on what editor and agent say, and keeps it."""

import asyncio
import json
import os
import re
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from pydantic import JsonValue

from comply.providers import LINE_LIMIT, kill_group
from comply.record import kind_of
from comply.run import Unreachable
from comply.settings import AgentServer
from comply.template import literal

Said = tuple[bool, JsonValue]
"""A message, and whether the editor sent it."""


def to_test(said: list[Said], title: str) -> str:
    """The session as the text of a test.

    What the editor sent becomes steps `send`; what came back between two of them one window. The
    ids of sessions and the folder become variables. Of notifications and requests of the agent
    only the method is kept: say what matters in them.
    """
    known: dict[str, str] = {}
    steps: list[dict[str, Any]] = []
    window: dict[str, Any] = {}
    for sent, message in said:
        if not isinstance(message, dict) or (sent and "method" not in message):
            continue
        if sent:
            _learn(message.get("params"), "cwd", "sandbox", known)
            steps.append({"send": _replaced(message, known)})
            window = {}
            continue
        if not window:
            window = {"messages": []}
            steps.append({"expect": window})
        kind = kind_of(message)
        if kind == "response":
            var = f"sessionId{'' if 'sessionId' not in known.values() else len(known)}"
            partial = _replaced(literal(message), known, pattern=True)
            if _learn(message.get("result"), "sessionId", var, known):
                partial["result"]["sessionId"] = "."
                window.setdefault("captures", []).append({"path": "result.sessionId", "var": var})
        else:
            partial = {"method": literal(message.get("method"))}
        window["messages"].append({kind: partial})
    test = {
        "title": title,
        "description": "Recorded; say here what it verifies.",
        "severity": "optional",
        "docs": [],
        "transport": "stdio",
        "steps": [step for step in steps if step.get("expect", {"messages": 1})["messages"]],
    }
    return json.dumps(test, indent=2, ensure_ascii=False) + "\n"


def _learn(value: JsonValue, name: str, var: str, known: dict[str, str]) -> bool:
    """Note that a value which stands under `name` is to become a variable; whether it is new."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found or found in known:
        return False
    known[found] = var
    return True


def _replaced(value: Any, known: dict[str, str], *, pattern: bool = False) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, known, pattern=pattern) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, known, pattern=pattern) for item in value]
    if isinstance(value, str):
        for text, var in known.items():
            value = value.replace(re.escape(text) if pattern else text, f"${{{var}}}")
    return value


async def relay(server: AgentServer, editor: BinaryIO, answers: BinaryIO) -> list[Said]:
    """Run the agent between the editor's two streams until one side ends. Raises Unreachable."""
    try:
        process = await asyncio.create_subprocess_exec(
            server.command,
            *server.args,
            env={**os.environ, **server.env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sys.stderr,
            start_new_session=True,
            limit=LINE_LIMIT,
        )
    except OSError as error:
        raise Unreachable(f"can't start {server.command}: {error.strerror}") from None
    said: list[Said] = []
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), editor)
    assert process.stdin is not None
    assert process.stdout is not None

    async def up(agent: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            _keep(said, True, line)
            agent.write(line)
            await agent.drain()
        agent.close()

    async def down(agent: asyncio.StreamReader) -> None:
        while line := await agent.readline():
            _keep(said, False, line)
            answers.write(line)
            answers.flush()

    asking = asyncio.create_task(up(process.stdin))
    try:
        await down(process.stdout)
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await asking
        pipe.close()
        kill_group(process)
        await process.wait()
    return said


def _keep(said: list[Said], sent: bool, line: bytes) -> None:
    with suppress(ValueError, RecursionError):
        said.append((sent, json.loads(line)))
