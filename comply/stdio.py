"""Tests of Agent Client Protocol agents: over stdio, a JSON-RPC message a line, a fresh process
and sandbox for each test."""

import asyncio
import base64
import json
import tempfile
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from comply import versions
from comply.canned import Canned, canned
from comply.matching import at, matches
from comply.mcp_report import McpReport
from comply.patterns import PatternError
from comply.process import OUTPUT_BYTES, Child, NotStarted
from comply.providers import Providers, Refused
from comply.record import Frame, Record
from comply.result import Finding, NotApplicable
from comply.run import HarnessError
from comply.settings import AgentServer
from comply.template import UnknownVariable, fill, fill_pattern, names, text_of
from schemas.jsont import ComplianceTest, JsonObject, Step

AUTH_REQUIRED = -32000
LOGINS = frozenset({"authenticate", "auth/login"})
ANSWER_SECONDS = 60.0
STOP_SECONDS = 0.5


class OtherVersion(NotApplicable):
    """The agent doesn't negotiate the version that the test is of."""


class Unanswered(Finding):
    """A request of the runner's own that the agent leaves open."""

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
        """Given what was said, once the test is over, if the agent is still there."""
        self.server = server
        self.test = test
        self.record = Record()
        self.capabilities: JsonObject = {}
        self.opened: JsonValue = None
        self.folder = tempfile.TemporaryDirectory(prefix="comply-", ignore_cleanup_errors=True)
        self.sandbox = Path(self.folder.name).resolve() / "workspace"
        # An agent works in the folder that session/new names, not in that of its process.
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
        """Whether the test has logged in itself: then it is about logins."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.canned = canned(test)
        self.held: list[tuple[JsonObject, Canned]] = []
        """Requests of the agent whose answers wait for the end of the next step."""
        self.own: list[Frame] = []
        """Answers to what the runner asked for the test, until it sends something else."""

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

    async def act(self, step: Step) -> None:
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
        held, self.held = self.held, []
        for request, reply in held:
            await self._answer(request, reply)

    async def _call(self, method: str, params: JsonObject, *, seen: bool = False) -> JsonObject:
        """A request of the runner's own, whose id no test can have. Raises Finding.

        If it is made for the test, its answer may be `seen` by what the test expects next.
        """
        id = f"comply-{uuid.uuid4()}"
        await self._write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

        def found() -> JsonObject | None:
            for frame in self.record.open():
                if isinstance(frame.message, dict) and frame.message.get("id") == id:
                    frame.matched = not seen
                    self.own += [frame] if seen else []
                    return frame.message
            return None

        answer: list[JsonObject] = []

        def arrived() -> bool:
            if not answer and (message := found()) is not None:
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
            self._take(message)

    def _take(self, request: dict[str, Any]) -> None:
        """Have a request answered: by the test, or else by the real provider."""
        try:
            reply = self._reply(request)
        except (UnknownVariable, PatternError) as error:
            self.record.fail(error)
            return
        if reply.late:
            self.held.append((request, reply))
        else:
            self._spawn(self._answer(request, reply))

    def _reply(self, request: dict[str, Any]) -> Canned:
        """How the test has it answered; each reply is good for one request."""
        for number, one in enumerate(self.canned):
            if matches(fill_pattern(one.request, self.variables), request):
                return self.canned.pop(number)
        return Canned({}, None)

    async def _answer(self, request: dict[str, Any], reply: Canned) -> None:
        if reply.answer is None:
            await self._provide(request)
            return
        answer = fill(reply.answer, self.variables)
        assert isinstance(answer, dict)
        terminal = at(answer, "result.terminalId")
        if request["method"] == "terminal/create" and isinstance(terminal, str):
            self.providers.promised.add(terminal)
        await self._write({"jsonrpc": "2.0", "id": request["id"], **answer})

    async def _provide(self, request: dict[str, Any]) -> None:
        answer: JsonObject = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = await self.providers.answer(
                str(request["method"]), request.get("params")
            )
        except Refused as refused:
            answer["error"] = {"code": refused.code, "message": str(refused)}
        await self._write(answer)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def watched() -> None:
            try:
                await work
            except (UnknownVariable, PatternError) as error:
                self.record.fail(error)

        task = asyncio.create_task(watched())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def close(self) -> str:
        """End the agent and all it started, and give back the end of its stderr."""
        if self.record.ended is None:
            self.over(self.record.frames)
        if self.child is not None:
            await self.child.end(STOP_SECONDS)
        await self.providers.close()
        await self.report.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.folder.cleanup()
        await asyncio.to_thread(judge, self.record.frames)
        return self.child.log if self.child is not None else ""


def initialises(test: ComplianceTest) -> bool:
    """Whether the test sends `initialize` itself, and so meets a raw agent."""
    return any(step.send and step.send.get("method") == "initialize" for step in test.steps)


def _login_wanted(message: JsonValue) -> str | None:
    """What an answer says that only asks for a login (ACP, Authentication); None of others."""
    if at(message, "error.code") != AUTH_REQUIRED or at(message, "method") is not None:
        return None
    return f"needs authentication: {at(message, 'error.message')}"


def _no_number(name: str) -> float:
    """NaN and Infinity are not JSON, though Python reads them."""
    raise ValueError(f"{name} is not JSON")


def judge(frames: list[Frame]) -> None:
    """Note at each message which rule of the protocol it breaks."""
    # The library takes a third of a second to import: only who tests agents waits for it.
    from comply.frames import breaches

    said = [frame for frame in frames if frame.kind != "mcp"]
    for breach in breaches((frame.sent, frame.message) for frame in said):
        said[breach.place].breach = breach.text
