"""Records a live session between an editor and an agent as a test to edit."""

import asyncio
import json
import os
import re
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from pydantic import JsonValue

from comply.plan import ENDING
from comply.process import LINE_LIMIT, MARKER, close_pipes, exited, kill_group, kill_marked
from comply.record import kind_of
from comply.settings import AgentServer
from comply.target import SubjectUnreachable

TURN_MS = 60_000
Said = tuple[bool, JsonValue]
"""A message, and whether the editor sent it."""


def to_test(messages: list[Said], title: str) -> str:
    """The session as the text of a test, in the form that other runners of such files read too.

    What the editor sent becomes steps `send`, or `newSession`; what came back between two of them
    one window. Initialisation is left to the runner: what the editor offers becomes `init`. The
    ids of sessions and the folder become variables. Of notifications and requests of the agent
    only the method is kept: say what matters in them. What the editor answered is canned, but for
    files and terminals, which a runner has.
    """
    story = _Story()
    for sent, message in messages:
        if isinstance(message, dict):
            (story.sent if sent else story.heard)(message)
    test = {
        "title": title,
        "description": "Recorded; say here what it verifies.",
        "severity": "optional",
        "docs": [],
        "sandbox": {"files": []},
        **({"init": {"clientCapabilities": story.offers}} if story.offers is not None else {}),
        "steps": [step for step in story.steps if step.get("expect", {"messages": 1})["messages"]],
    }
    return json.dumps(test, indent=2, ensure_ascii=False) + "\n"


class _Story:
    """The steps so far."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.offers: JsonValue = None
        self.known: dict[str, str] = {}
        """Values that are written as a variable, and which."""
        self.left: list[JsonValue] = []
        """Ids of requests whose answer the runner takes itself."""
        self.opening: dict[str, dict[str, Any]] = {}
        """The steps `newSession` that have no answer yet, by id."""
        self.asked: dict[str, dict[str, Any]] = {}
        """The agent's requests that have no answer yet, by id."""
        self.frames: dict[str, dict[str, Any]] = {}
        """What was sent and has no answer yet, by id."""
        self.window: dict[str, Any] | None = None

    def sent(self, message: dict[str, Any]) -> None:
        id, method, params = message.get("id"), message.get("method"), message.get("params")
        if method is None:
            self.reply(id, message)
            return
        self.window = None
        given = params if isinstance(params, dict) else {}
        if method == "initialize":
            self.offers = given.get("clientCapabilities")
            self.left.append(id)
        elif method == "session/new" and given.keys() <= {"cwd", "mcpServers"}:
            self.learn(given.get("cwd"), "sandbox")
            number = sum("newSession" in step for step in self.steps) + 1
            var = "sessionId" if number == 1 else f"sessionId{number}"
            servers = self.replaced(given.get("mcpServers") or [])
            step = {"mcpServers": servers, "capture": var}
            self.steps.append({"newSession": step})
            self.opening[json.dumps(id)] = step
        else:
            frame = self.replaced(message)
            self.frames[json.dumps(id)] = frame
            self.steps.append({"send": frame})

    def heard(self, message: dict[str, Any]) -> None:
        kind, id = kind_of(message), message.get("id")
        opened = self.opening.pop(json.dumps(id), None) if kind == "response" else None
        if opened is not None:
            result = message.get("result")
            session = result.get("sessionId") if isinstance(result, dict) else None
            self.learn(session, str(opened["capture"]))
            return
        if kind == "response" and id in self.left:
            return
        if kind == "other" or not self.steps:
            return
        if self.window is None:
            self.window = {"timeoutMs": TURN_MS, "messages": []}
            self.steps.append({"expect": self.window})
        if kind == "response":
            partial = self.expected(message)
            frame = self.frames.pop(json.dumps(id), None)
            if frame is not None and "error" in message:
                frame["expectError"] = True
        else:
            partial = {"method": self.expected(message.get("method"))}
        if kind == "clientRequest":
            self.asked[json.dumps(id)] = partial
        self.window["messages"].append({kind: partial})

    def reply(self, id: JsonValue, message: dict[str, Any]) -> None:
        request = self.asked.pop(json.dumps(id), None)
        if request is None or re.match(r"\^(fs|terminal)/", request["method"]):
            return
        given = {name: message[name] for name in ("result", "error") if name in message}
        request["reply"] = self.replaced(given)

    def learn(self, value: JsonValue, var: str) -> None:
        if isinstance(value, str) and value:
            self.known.setdefault(value, var)

    def replaced(self, value: Any, escape: Callable[[str], str] = str) -> Any:
        """With variables in place of the values that are known."""
        if isinstance(value, dict):
            return {name: self.replaced(item, escape) for name, item in value.items()}
        if isinstance(value, list):
            return [self.replaced(item, escape) for item in value]
        if isinstance(value, str):
            for text, var in sorted(self.known.items(), key=lambda pair: -len(pair[0])):
                value = value.replace(escape(text), f"${{{var}}}")
        return value

    def expected(self, value: Any) -> Any:
        """An expectation that only this value meets."""
        return self.replaced(_bound(value), _escaped)


def _bound(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bound(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_bound(item) for item in value]
    return f"^{_escaped(value)}$" if isinstance(value, str) else value


def _escaped(text: str) -> str:
    """`text` as a regex of ECMAScript, which allows no escapes of ordinary letters."""
    return re.sub(r"[\\^$.*+?()\[\]{}|]", r"\\\g<0>", text)


async def relay(server: AgentServer, editor: BinaryIO, answers: BinaryIO) -> list[Said]:
    """Run the agent between the editor's two streams until one side ends or a signal comes.

    Returns the messages so far in each case. Raises SubjectUnreachable.
    """
    marker = uuid.uuid4().hex
    process = await _start(server, marker)
    assert process.stdin is not None
    assert process.stdout is not None
    messages: list[Said] = []
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), editor)
    asking = asyncio.create_task(_pass_on_requests(reader, process.stdin, messages))
    listening = asyncio.create_task(_pass_on_answers(process.stdout, answers, messages))
    for number in ENDING:
        loop.add_signal_handler(number, listening.cancel)
    try:
        with suppress(ConnectionError, ValueError):
            await asyncio.wait({listening})
            if not listening.cancelled():
                listening.result()
    finally:
        asking.cancel()
        listening.cancel()
        with suppress(asyncio.CancelledError, ConnectionError, ValueError):
            await asking
        pipe.close()
        kill_group(process)
        await asyncio.to_thread(kill_marked, marker)
        await exited(process)
        close_pipes(process)
    return messages


async def _start(server: AgentServer, marker: str) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            server.command,
            *server.args,
            env={**os.environ, **server.env, MARKER: marker},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sys.stderr,
            start_new_session=True,
            limit=LINE_LIMIT,
        )
    except OSError as error:
        raise SubjectUnreachable(f"can't start {server.command}: {error.strerror}") from None


async def _pass_on_requests(
    editor: asyncio.StreamReader, agent: asyncio.StreamWriter, messages: list[Said]
) -> None:
    while line := await editor.readline():
        _keep(messages, True, line)
        agent.write(line)
        await agent.drain()
    agent.close()


async def _pass_on_answers(
    agent: asyncio.StreamReader, editor: BinaryIO, messages: list[Said]
) -> None:
    while line := await agent.readline():
        _keep(messages, False, line)
        editor.write(line)
        editor.flush()


def _keep(messages: list[Said], sent: bool, line: bytes) -> None:
    with suppress(ValueError, RecursionError):
        messages.append((sent, json.loads(line)))
