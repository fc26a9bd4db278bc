"""A complete agent on the official SDK: `python -m tests.comply.complete`.

It does what a prompt's words ask for, with all that a client offers, so that suites of other people
can be run against it. `tests.comply.agent` is the small one, which can be broken on purpose.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from acp import (
    PROTOCOL_VERSION,
    Agent,
    Client,
    RequestError,
    plan_entry,
    run_agent,
    start_tool_call,
    text_block,
    tool_diff_content,
    update_agent_message,
    update_agent_thought,
    update_plan,
    update_tool_call,
)
from acp.helpers import update_available_commands, update_current_mode, update_user_message
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    ClientCapabilities,
    FileSystemCapabilities,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpServerStdio,
    NewSessionResponse,
    PermissionOption,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    ToolCallLocation,
    ToolCallUpdate,
    ToolKind,
)

MODES = [SessionMode(id="ask", name="Ask"), SessionMode(id="code", name="Code")]
COMMAND = AvailableCommand(name="web", description="Search the web")


@dataclass
class Session:
    id: str
    cwd: str
    servers: list[McpServerStdio]
    said: list[Any] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0


class Cancelled(Exception):
    """The turn was cancelled."""


class Complete:
    client: Client

    def __init__(self) -> None:
        self.caps = ClientCapabilities()
        self.sessions: dict[str, Session] = {}

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    # --- sessions -------------------------------------------------------------------------------

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        *args: Any,
        **more: Any,
    ) -> InitializeResponse:
        self.caps = client_capabilities or ClientCapabilities()
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, audio=True, embedded_context=True
                ),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
        )

    async def new_session(
        self, cwd: str, *args: Any, mcp_servers: Any = None, **more: Any
    ) -> NewSessionResponse:
        session = Session(f"session-{len(self.sessions) + 1}", cwd, list(mcp_servers or []))
        self.sessions[session.id] = session
        await self.client.session_update(session.id, update_available_commands([COMMAND]))
        modes = SessionModeState(current_mode_id="ask", available_modes=MODES)
        return NewSessionResponse(session_id=session.id, modes=modes)

    async def load_session(
        self, cwd: str, session_id: str, *args: Any, **more: Any
    ) -> LoadSessionResponse:
        for update in list(self.session(session_id).said):
            await self.client.session_update(session_id, update)
        return LoadSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **more: Any
    ) -> ListSessionsResponse:
        if cursor is not None:
            raise RequestError.invalid_params({"cursor": cursor})
        found = [
            SessionInfo(session_id=one.id, cwd=one.cwd)
            for one in self.sessions.values()
            if cwd in (None, one.cwd)
        ]
        return ListSessionsResponse(sessions=found)

    async def set_session_mode(
        self, session_id: str, mode_id: str, **more: Any
    ) -> SetSessionModeResponse:
        self.session(session_id)
        if mode_id not in [one.id for one in MODES]:
            raise RequestError.invalid_params({"modeId": mode_id})
        await self.client.session_update(session_id, update_current_mode(mode_id))
        return SetSessionModeResponse()

    async def cancel(self, session_id: str, **more: Any) -> None:
        self.session(session_id).cancelled.set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(f"_{method}")

    def session(self, id: str) -> Session:
        if id not in self.sessions:
            raise RequestError.invalid_params({"sessionId": id})
        return self.sessions[id]

    # --- turns ----------------------------------------------------------------------------------

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> PromptResponse:
        session = self.session(session_id)
        session.cancelled.clear()
        for block in prompt:
            await self.tell(session, update_user_message(block))
        text = "\n".join(getattr(block, "text", "") for block in prompt)
        words: dict[str, Callable[[Session, str], Awaitable[None]]] = {
            r"\bmcp\b": self.call_tool,
            r"permission": self.permission,
            r"\bthink\b|very long": self.think,
            r"\bplan\b": self.plan,
            r"\brun\b.*\bcommand\b": self.run,
            r"\bdiff\b": self.diff,
            r"\b(create|write)\b": self.write,
            r"\b(read|work on)\b": self.read,
        }
        doing = next((work for word, work in words.items() if re.search(word, text, re.I)), None)
        try:
            await self.tell(session, update_agent_thought(text_block("I see.")))
            await (doing or self.hello)(session, text)
        except Cancelled:
            return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="cancelled" if session.cancelled.is_set() else "end_turn")

    async def tell(self, session: Session, update: Any) -> None:
        session.said.append(update)
        await self.client.session_update(session.id, update)

    async def hello(self, session: Session, text: str) -> None:
        await self.tell(session, update_agent_message(text_block("Hello")))
        for server in session.servers:
            async with mcp(server):
                pass

    async def think(self, session: Session, text: str) -> None:
        await session.cancelled.wait()
        raise Cancelled

    async def plan(self, session: Session, text: str) -> None:
        await self.tell(session, update_plan([plan_entry(one) for one in ("Look", "Do", "Check")]))

    @asynccontextmanager
    async def tool_call(
        self, session: Session, kind: ToolKind, path: str | None = None, *content: Any
    ) -> AsyncIterator[None]:
        """A call of a tool, which is shown as failed when the client or the tool refuses."""
        session.calls += 1
        id = f"call-{session.calls}"
        where = [ToolCallLocation(path=path)] if path else []
        began = start_tool_call(id, kind.title(), kind=kind, status="in_progress", locations=where)
        await self.tell(session, began)
        try:
            yield
        except (RequestError, OSError) as error:
            print(error, file=sys.stderr)
            await self.tell(session, update_tool_call(id, status="failed"))
        else:
            shown = list(content) or None
            await self.tell(session, update_tool_call(id, status="completed", content=shown))

    @property
    def fs(self) -> FileSystemCapabilities:
        return self.caps.fs or FileSystemCapabilities()

    async def read(self, session: Session, text: str) -> None:
        path = file_in(session, text, "greeting.txt")
        async with self.tool_call(session, "read", path):
            if self.fs.read_text_file:
                await self.client.read_text_file(session.id, path)

    async def write(self, session: Session, text: str) -> None:
        path = file_in(session, text, "out.txt")
        async with self.tool_call(session, "edit", path):
            if self.fs.write_text_file:
                await self.client.write_text_file(session.id, path, quoted(text, "hello"))

    async def diff(self, session: Session, text: str) -> None:
        path = file_in(session, text, "file.txt")
        async with self.tool_call(session, "edit", path, tool_diff_content(path, "new", "old")):
            pass

    async def permission(self, session: Session, text: str) -> None:
        kinds: list[Any] = ["allow_once", "reject_once"]
        answer = await self.client.request_permission(
            session.id,
            ToolCallUpdate(tool_call_id="call-0", title="Write", kind="edit"),
            [PermissionOption(option_id=one, name=one, kind=one) for one in kinds],
        )
        if answer.outcome.outcome == "cancelled":
            raise Cancelled
        if answer.outcome.option_id == "allow_once":
            await self.write(session, text)

    async def run(self, session: Session, text: str) -> None:
        if not self.caps.terminal:
            return
        said = text.partition("command:")[2].strip() or quoted(text, "echo acp")
        command = said if " " in said else f"echo {said}"
        async with self.tool_call(session, "execute"):
            made = await self.client.create_terminal(session.id, "sh", ["-c", command])
            given = (session.id, made.terminal_id)
            ended = await self.client.wait_for_terminal_exit(*given)
            await self.client.terminal_output(*given)
            await self.client.release_terminal(*given)
            if ended.exit_code:
                raise OSError(f"{command} ended with {ended.exit_code}")

    async def call_tool(self, session: Session, text: str) -> None:
        if not session.servers:
            return
        async with self.tool_call(session, "other"), mcp(session.servers[0]) as server:
            wanted = re.search(r"\w*(?:-|_)\w+|ping", text)
            await server.call_tool(wanted[0] if wanted else "ping", {})


def file_in(session: Session, text: str, usual: str) -> str:
    named = re.search(r"\w+\.txt", text)
    return f"{session.cwd}/{named[0] if named else usual}"


def quoted(text: str, usual: str) -> str:
    """What stands in quotes."""
    found = re.search(r"'([^']*)'", text)
    return found[1] if found else usual


@asynccontextmanager
async def mcp(server: McpServerStdio) -> AsyncIterator[Any]:
    """A client of an MCP server over stdio. Raises OSError when the server can't be started."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    env = {one.name: one.value for one in server.env or []}
    given = StdioServerParameters(command=server.command, args=server.args, env=env)
    async with stdio_client(given) as streams, ClientSession(*streams) as session:
        await session.initialize()
        await session.list_tools()
        yield session


if __name__ == "__main__":
    asyncio.run(run_agent(cast(Agent, Complete())))
