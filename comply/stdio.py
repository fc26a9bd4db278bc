"""Tests of Agent Client Protocol agents: over stdio, a JSON-RPC message a line, a fresh process
and sandbox for each test."""

import asyncio
import base64
import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from comply.files import Case
from comply.matching import look_up, matches
from comply.mcp_report import McpReport
from comply.providers import LINE_LIMIT, Providers, Refused, kill_group
from comply.record import Record, expected_of
from comply.result import Finding, NotApplicable
from comply.run import HarnessError, Unreachable
from comply.settings import AgentServer
from comply.template import fill, fill_pattern, names, text_of
from schemas.jsont import ComplianceTest, JsonObject, Precondition, Step

PROTOCOL_VERSION = 1
"""The latest that we support. The SDK has it too, but importing that takes seconds."""
AUTH_REQUIRED = -32000
ANSWER_SECONDS = 60.0
LEARN_SECONDS = 0.3
STOP_SECONDS = 0.5
LOG_BYTES = 20_000
CAPABILITIES: JsonObject = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
}


def client_capabilities(test: ComplianceTest) -> JsonObject:
    return {**CAPABILITIES, **(test.init.client_capabilities or {})}


@dataclass(slots=True)
class StdioTarget:
    """An agent, and what it offered when it was first initialised."""

    name: str
    server: AgentServer
    facts: dict[str, str] = field(default_factory=dict)
    offers: JsonObject = field(default_factory=dict)
    locked: str | None = None
    """Why it opens no session: it wants authentication."""

    async def learn(self) -> None:
        """Initialise once, and open a session if it lets us. Raises Unreachable."""
        test = ComplianceTest.model_validate(
            {"title": "learn", "severity": "required", "steps": [{"newSession": {}}]}
        )
        case = Case("learn", "", Path("learn"), test)
        session: StdioSession | None = None
        try:
            session = await self.open(case)
            self.offers = session.capabilities
            self.facts["Caps"] = text_of(self.offers)
            await session.act(test.steps[0])
            self.offers = {**self.offers, "session": session.opened}
            await asyncio.sleep(LEARN_SECONDS)
        except NotApplicable as reason:
            self.facts["Notes"] = self.locked = str(reason)
        except Finding as finding:
            self.facts["Notes"] = str(finding)
        except HarnessError as error:
            raise Unreachable(str(error)) from None
        finally:
            if session is not None:
                await session.close()
        modes = _path(self.offers, "session.modes.availableModes")
        self.facts["Modes"] = _ids(modes, "id") or "not advertised"
        commands = [
            found
            for frame in (session.record.frames if session else [])
            if (found := _path(frame.message, "params.update.availableCommands")) is not None
        ]
        self.facts["Commands"] = _ids(commands[-1] if commands else None, "name") or "none"

    def missing(self, test: ComplianceTest) -> str | None:
        if test.transport != "stdio":
            return f"is for {test.transport}, not for an agent over stdio"
        if self.locked is not None and any(step.new_session for step in test.steps):
            return self.locked
        for condition in test.preconditions:
            if self._holds(condition, test) is not condition.must_be:
                what = condition.agent_cap or condition.cap or condition.method
                return f"{what} is {'not ' if condition.must_be else ''}offered"
        return None

    def _holds(self, condition: Precondition, test: ComplianceTest) -> bool:
        if condition.cap is not None:
            path = condition.cap.removeprefix("client.")
            return bool(_path(client_capabilities(test), path))
        return bool(_path(self.offers, condition.agent_cap or condition.method or ""))

    async def open(self, case: Case) -> "StdioSession":
        session = StdioSession(self.server, case.test)
        await session.start()
        return session

    async def close(self) -> None:
        """Nothing outlives its test."""


class StdioSession:
    """One process of the agent, in a sandbox of its own."""

    def __init__(self, server: AgentServer, test: ComplianceTest) -> None:
        self.server = server
        self.test = test
        self.record = Record()
        self.capabilities: JsonObject = {}
        self.opened: JsonValue = None
        self.folder = tempfile.TemporaryDirectory(prefix="comply-", ignore_cleanup_errors=True)
        self.sandbox = Path(self.folder.name).resolve() / "workspace"
        self.log = Path(self.folder.name) / "stderr"
        self.providers = Providers(
            self.sandbox, client_capabilities(test), test.init.permission_policy
        )
        self.variables: dict[str, JsonValue] = {
            "sandbox": str(self.sandbox),
            "protocolVersionDefault": PROTOCOL_VERSION,
            "clientCapabilitiesDefault": client_capabilities(test),
            "unique": uuid.uuid4().hex[:12],
        }
        self.report = McpReport(
            Path(self.folder.name), lambda message: self.record.heard(message, "mcp")
        )
        self.variables["mcpServer"] = self.report.offer(str(self.variables["unique"]))
        self.process: asyncio.subprocess.Process | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.replies = list(self._canned())
        self.held: list[JsonObject] = []
        """Answers that wait for the end of the next step."""

    async def start(self) -> None:
        """Write the sandbox, start the agent and initialise it, unless the test does so itself."""
        self._write_files()
        if any("mcpServer" in names(step.model_dump()) for step in self.test.steps):
            await self.report.start()
        with self.log.open("wb") as log:
            try:
                self.process = await asyncio.create_subprocess_exec(
                    self.server.command,
                    *self.server.args,
                    cwd=self.sandbox,
                    env={**os.environ, **self.server.env},
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    limit=LINE_LIMIT,
                )
            except OSError as error:
                self.folder.cleanup()
                raise HarnessError(f"can't start {self.server.command}: {error.strerror}") from None
        self._spawn(self._listen())
        if any(step.send and step.send.get("method") == "initialize" for step in self.test.steps):
            return
        try:
            await self._prepare()
        except BaseException:
            await self.close()
            raise

    async def _prepare(self) -> None:
        params: JsonObject = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": client_capabilities(self.test),
        }
        answer = await self._call("initialize", params)
        found = answer.get("agentCapabilities")
        self.capabilities = found if isinstance(found, dict) else {}
        if self.server.authenticate is not None:
            await self._call("authenticate", {"methodId": self.server.authenticate})

    def _write_files(self) -> None:
        self.sandbox.mkdir()
        for file in self.test.sandbox.files:
            path = self.sandbox / file.path
            if not path.resolve().is_relative_to(self.sandbox):
                raise HarnessError(f"sandbox file {file.path} lies outside the sandbox")
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.base64 is not None:
                path.write_bytes(base64.b64decode(file.base64))
            else:
                path.write_text(file.text or "", encoding="utf-8")

    def _canned(self) -> Iterator[tuple[JsonValue, JsonValue, bool]]:
        """The requests of the agent that the test itself replies to: what to, with what, late."""
        for step in self.test.steps:
            for message in step.expect.messages if step.expect else []:
                request = message.client_request
                if request is None:
                    continue
                if "reply" in message.model_fields_set:
                    yield expected_of(message)[1], message.reply, message.late
                elif "reply" in request:
                    yield expected_of(message)[1], request["reply"], message.late

    # --- our side -------------------------------------------------------------------------------

    async def act(self, step: Step) -> None:
        if step.new_session is not None:
            params: JsonObject = {
                "cwd": str(self.sandbox),
                "mcpServers": fill(step.new_session.mcp_servers, self.variables),
            }
            self.opened = await self._call("session/new", params)
            id = _path(self.opened, "sessionId")
            if not isinstance(id, str) or not id:
                raise Finding("session/new is answered without a sessionId")
            self.variables[step.new_session.capture] = id
        elif step.send is not None:
            frame = fill(step.send, self.variables)
            assert isinstance(frame, dict)
            frame.pop("expectError", None)
            self.providers.cancelled |= frame.get("method") == "session/cancel"
            await self._write(frame)
        else:
            raise HarnessError("this step is not for stdio")
        while self.held:
            await self._write(self.held.pop(0))

    async def _call(self, method: str, params: JsonObject) -> JsonObject:
        """A request of the runner's own, whose id no test can have. Raises Finding."""
        id = f"comply-{uuid.uuid4()}"
        await self._write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

        def found() -> JsonObject | None:
            for frame in self.record.open():
                if isinstance(frame.message, dict) and frame.message.get("id") == id:
                    frame.matched = True
                    return frame.message
            return None

        answer: list[JsonObject] = []

        def arrived() -> bool:
            if not answer and (message := found()) is not None:
                answer.append(message)
            return bool(answer)

        if not await self.record.until(arrived, ANSWER_SECONDS):
            why = self.record.ended or f"within {ANSWER_SECONDS:g} s"
            raise Finding(f"{method} is not answered: {why}")
        error, result = answer[0].get("error"), answer[0].get("result")
        if isinstance(error, dict) and error.get("code") == AUTH_REQUIRED:
            raise NotApplicable(f"needs authentication: {error.get('message')}")
        if error is not None:
            raise Finding(f"{method} is answered by an error: {text_of(error)}")
        return result if isinstance(result, dict) else {}

    async def _write(self, message: JsonValue) -> None:
        self.record.sent(message)
        assert self.process is not None
        assert self.process.stdin is not None
        with suppress(ConnectionError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()

    # --- the agent's side -----------------------------------------------------------------------

    async def _listen(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            while line := await self.process.stdout.readline():
                self._hear(line)
        except ValueError:
            self.record.end(f"the agent sent a line of more than {LINE_LIMIT >> 20} MiB")
            return
        self.record.end(f"the agent exited with status {await self.process.wait()}")

    def _hear(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            self.record.heard(line.decode(errors="replace"), "other")
            return
        self.record.heard(message)
        if isinstance(message, dict) and "method" in message and "id" in message:
            self._take(message)

    def _take(self, request: dict[str, Any]) -> None:
        """Have a request answered: by the test, or else by the real provider."""
        for number, (expected, reply, late) in enumerate(self.replies):
            if matches(fill_pattern(expected, self.variables), request):
                del self.replies[number]
                result = fill(reply, self.variables)
                answer: JsonObject = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                if late:
                    self.held.append(answer)
                else:
                    self._spawn(self._write(answer))
                return
        self._spawn(self._provide(request))

    async def _provide(self, request: dict[str, Any]) -> None:
        answer: JsonObject = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = await self.providers.answer(
                str(request["method"]), request.get("params")
            )
        except Refused as refused:
            answer["error"] = {"code": refused.code, "message": str(refused)}
        await self._write(answer)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def close(self) -> str:
        """End the agent and all it started, and give back the end of its stderr."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self.process.wait()
            kill_group(self.process)
            await self.process.wait()
        await self.providers.close()
        await self.report.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        log = self.log.read_bytes()[-LOG_BYTES:].decode(errors="replace")
        self.folder.cleanup()
        return log


def _path(value: JsonValue, path: str) -> JsonValue:
    try:
        return look_up(value, path)
    except KeyError:
        return None


def _ids(items: JsonValue, name: str) -> str:
    found = items if isinstance(items, list) else []
    return "/".join(text_of(_path(item, name)) for item in found)
