"""Tests of Agent Client Protocol agents: over stdio, a JSON-RPC message a line, a fresh process
and sandbox for each test."""

import asyncio
import base64
import json
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from comply import versions
from comply.matching import at
from comply.mcp_report import McpReport
from comply.process import OUTPUT_BYTES, Child, NotStarted
from comply.providers import Providers
from comply.record import Frame, Transcript
from comply.result import Finding, NotApplicable
from comply.scripted_client import ScriptedClient
from comply.scripted_replies import scripted_replies
from comply.settings import AgentServer
from comply.target import HarnessError
from comply.template import fill, names, text_of
from schemas.jsont import ComplianceTest, JsonObject, JsontStep

AUTH_REQUIRED = -32000
LOGINS = frozenset({"authenticate", "auth/login"})
ANSWER_SECONDS = 60.0
STOP_SECONDS = 0.5


class OtherVersion(NotApplicable):
    """The agent does not negotiate the protocol version of the test."""


class Unanswered(Finding):
    """The agent does not answer a request of the runner itself."""

    def __init__(self, method: str, why: str) -> None:
        super().__init__(f"{method} is not answered{why}")
        self.method = method


class StdioSession:
    """One process of the agent, in a sandbox of its own."""

    def __init__(
        self,
        server: AgentServer,
        test: ComplianceTest,
        patience: float = ANSWER_SECONDS,
        over: Callable[[list[Frame]], None] = lambda frames: None,
    ) -> None:
        self.patience = patience
        self.over = over
        """Called with the transcript at the end of the test, if the agent still runs."""
        self.server = server
        self.test = test
        self.record = Transcript()
        self.capabilities: JsonObject = {}
        self.opened: JsonValue = None
        self.folder = tempfile.TemporaryDirectory(prefix="comply-", ignore_cleanup_errors=True)
        self.sandbox = Path(self.folder.name).resolve() / "workspace"
        # An agent must work in the folder that session/new names, not in its process's folder.
        self.elsewhere = Path(self.folder.name).resolve() / "elsewhere"
        self.marker = uuid.uuid4().hex
        offered = versions.client_capabilities(test)
        policy = test.init.permission_policy
        self.providers = Providers(self.sandbox, offered, policy, self.marker)
        self.variables: dict[str, JsonValue] = {
            "sandbox": str(self.sandbox),
            "protocolVersionDefault": test.protocol_version,
            "clientCapabilitiesDefault": offered,
            "unique": uuid.uuid4().hex[:12],
            "authMethod": server.authenticate or "",
        }
        self.report = McpReport(
            Path(self.folder.name), lambda message: self.record.heard(message, "mcp")
        )
        server_here = self.report.offer(str(self.variables["unique"]))
        self.variables["mcpServer"] = versions.mcp_server(test.protocol_version, server_here)
        self.child: Child | None = None
        self.logs_in = False
        """Whether the test has sent a login; then it is about logins."""
        self.client = ScriptedClient(
            scripted_replies(test), self.providers, self.variables, self._write, self.record.fail
        )
        self.own: list[Frame] = []
        """Answers to the runner's own requests that the test may still expect."""

    async def start(self) -> None:
        """Write the sandbox, start the agent and initialise it, unless the test does so itself."""
        try:
            self._write_files()
        except HarnessError:
            self.folder.cleanup()
            raise
        if any("mcpServer" in names(step.model_dump()) for step in self.test.steps):
            await self.report.start()
        try:
            self.child = await Child.start(
                [self.server.command, *self.server.args],
                cwd=self.elsewhere,
                env=self.server.env,
                marker=self.marker,
                heard=self._hear,
                ended=self._ended,
            )
        except NotStarted as error:
            raise HarnessError(str(error)) from None
        if not initialises(self.test):
            await self._prepare()

    async def _prepare(self) -> None:
        version = self.test.protocol_version
        params = versions.initialize(version, versions.client_capabilities(self.test))
        answer = await self._call("initialize", params, seen=True)
        if answer.get("protocolVersion") != version:
            spoken = text_of(answer.get("protocolVersion"))
            raise OtherVersion(f"speaks version {spoken} of the protocol, not {version}")
        self.capabilities = versions.offers(version, answer)
        if self.server.authenticate is not None:
            await self._call(versions.LOGIN[version], {"methodId": self.server.authenticate})

    def _write_files(self) -> None:
        self.sandbox.mkdir()
        self.elsewhere.mkdir()
        for file in self.test.sandbox.files:
            path = self.sandbox / file.path
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(
                    (file.text or "").encode()
                    if file.base64 is None
                    else base64.b64decode(file.base64)
                )
            except (OSError, UnicodeEncodeError) as error:
                why = getattr(error, "strerror", None) or "the text is not Unicode"
                raise HarnessError(f"sandbox file {file.path} can't be written: {why}") from None

    # --- our side -------------------------------------------------------------------------------

    async def act(self, step: JsontStep) -> None:
        for answer in self.own:
            answer.matched = True
        self.own.clear()
        if step.new_session is not None:
            params: JsonObject = {
                "cwd": str(self.sandbox),
                "mcpServers": fill(step.new_session.mcp_servers, self.variables),
            }
            self.opened = await self._call("session/new", params, seen=True)
            id = at(self.opened, "sessionId")
            if not isinstance(id, str) or not id:
                raise Finding("session/new is answered without a sessionId")
            self.variables[step.new_session.capture] = id
        elif step.send is not None:
            frame = fill(step.send, self.variables)
            assert isinstance(frame, dict)
            frame.pop("expectError", None)
            if frame.get("method") in ("session/cancel", "session/prompt"):
                self.providers.cancelled = frame["method"] == "session/cancel"
            self.logs_in |= frame.get("method") in LOGINS
            await self._write(frame)
        else:
            raise HarnessError("this step is not for stdio")
        await self.client.answer_held()

    async def _call(self, method: str, params: JsonObject, *, seen: bool = False) -> JsonObject:
        """Send a request of the runner itself, with an id that no test can have. Raises Finding.

        With `seen`, the next expectations of the test may match its answer.
        """
        id = f"comply-{uuid.uuid4()}"
        await self._write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

        def response() -> JsonObject | None:
            for frame in self.record.open():
                if isinstance(frame.message, dict) and frame.message.get("id") == id:
                    frame.matched = not seen
                    self.own += [frame] if seen else []
                    return frame.message
            return None

        answer: list[JsonObject] = []

        def arrived() -> bool:
            if not answer and (message := response()) is not None:
                answer.append(message)
            return bool(answer)

        if not await self.record.until(arrived, self.patience):
            ended = self.record.ended
            raise Unanswered(method, f": {ended}" if ended else f" within {self.patience:g} s")
        error, result = answer[0].get("error"), answer[0].get("result")
        if (refusal := _login_wanted(answer[0])) is not None:
            raise NotApplicable(refusal)
        if error is not None:
            raise Finding(f"{method} is answered by an error: {text_of(error)}")
        return result if isinstance(result, dict) else {}

    async def _write(self, message: JsonValue) -> None:
        self.record.sent(message)
        assert self.child is not None
        if self.child.unread > OUTPUT_BYTES:
            self.record.flood(f"the agent leaves more than {OUTPUT_BYTES >> 20} MiB unread")
            return
        await self.child.write(json.dumps(message).encode() + b"\n")

    # --- the agent's side -----------------------------------------------------------------------

    def _ended(self, why: str) -> None:
        assert self.child is not None
        (self.record.flood if self.child.flood else self.record.end)(f"the agent {why}")

    def _hear(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError):
            self.record.heard(line.decode(errors="replace").rstrip("\r\n"), "other")
            return
        self.record.heard(message, refusal=None if self.logs_in else _login_wanted(message))
        if isinstance(message, dict) and "method" in message and "id" in message:
            self.client.take(message)

    async def close(self) -> str:
        """End the agent and all it started. Returns the end of its stderr."""
        if self.record.ended is None:
            self.over(self.record.frames)
        if self.child is not None:
            await self.child.end(STOP_SECONDS)
        await self.providers.close()
        await self.report.close()
        await self.client.close()
        self.folder.cleanup()
        await asyncio.to_thread(judge, self.record.frames)
        return self.child.log if self.child is not None else ""


def initialises(test: ComplianceTest) -> bool:
    """Whether the test sends `initialize` itself, so that the runner does not."""
    return any(step.send and step.send.get("method") == "initialize" for step in test.steps)


def _login_wanted(message: JsonValue) -> str | None:
    """The text of an error that demands a login (Agent Client Protocol, Authentication); None for
    any other message."""
    if at(message, "error.code") != AUTH_REQUIRED or at(message, "method") is not None:
        return None
    return f"needs authentication: {at(message, 'error.message')}"


def _no_number(name: str) -> float:
    """Refuses NaN and Infinity, which Python reads although they are not JSON."""
    raise ValueError(f"{name} is not JSON")


def judge(frames: list[Frame]) -> None:
    """Note at each message the protocol rule that it breaks."""
    # The library takes a third of a second to import, so only tests of agents import it.
    from comply.frames import breaches

    judged = [frame for frame in frames if frame.kind != "mcp"]
    for breach in breaches((frame.sent, frame.message) for frame in judged):
        judged[breach.place].breach = breach.text
