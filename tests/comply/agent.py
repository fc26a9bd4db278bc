"""An agent by the official SDK that keeps every rule, or breaks the one that it is told to.

python -m tests.comply.agent [MUTATION]
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import acp
from acp import schema

BROKEN = sys.argv[1] if len(sys.argv) > 1 else ""
MODES = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]


class Agent:
    """Does what a prompt's words ask for."""

    def __init__(self) -> None:
        self.conn: Any = None
        self.caps: Any = None
        self.session = 0
        self.cwd = ""
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **_: Any):  # type: ignore[no-untyped-def]
        self.caps = client_capabilities
        known = protocol_version if BROKEN == "any version" else acp.PROTOCOL_VERSION
        return schema.InitializeResponse(
            protocol_version=known,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
            ),
        )

    async def new_session(self, cwd: str, **_: Any):  # type: ignore[no-untyped-def]
        self.cwd = cwd
        self.session += BROKEN != "one session"
        session = f"session-{self.session}"
        if BROKEN != "no commands":
            command = schema.AvailableCommand(name="web", description="Search the web")
            update = schema.AvailableCommandsUpdate(
                session_update="available_commands_update", available_commands=[command]
            )
            asyncio.get_running_loop().call_later(0.02, self.tell, session, update)
        modes = schema.SessionModeState.model_validate(
            {"currentModeId": "ask", "availableModes": MODES}
        )
        return schema.NewSessionResponse(session_id=session, modes=modes)

    def tell(self, session: str, update: Any) -> None:
        self.task = asyncio.ensure_future(
            self.conn.session_update(session_id=session, update=update)
        )

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> None:
        if BROKEN != "silent mode":
            update = schema.CurrentModeUpdate(
                session_update="current_mode_update", current_mode_id=mode_id
            )
            await self.conn.session_update(session_id=session_id, update=update)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> None:
        if BROKEN != "no replay":
            for update in (acp.update_user_message_text("?"), acp.update_agent_message_text("!")):
                await self.conn.session_update(session_id=session_id, update=update)

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any):  # type: ignore[no-untyped-def]
        self.cancelled.clear()
        if any(block.type == BROKEN for block in prompt):
            raise acp.RequestError.invalid_params({"type": BROKEN})
        if BROKEN == "crash":
            os._exit(3)
        text = prompt[0].text.lower()
        work: list[tuple[str, Callable[[str], Any]]] = [
            ("think", self.think),
            ("permission", self.ask),
            ("read", self.read),
            ("write", self.write),
            ("run", self.run),
            ("plan", self.plan),
        ]
        doing = next((one for word, one in work if word in text), self.hello)
        reason = await doing(session_id) or "end_turn"
        return schema.PromptResponse(stop_reason=BROKEN if BROKEN == "refusal" else reason)

    async def hello(self, session: str) -> None:
        await self.conn.session_update(
            session_id=session, update=acp.update_agent_message_text("Hello")
        )
        if BROKEN == "endless":
            await asyncio.Event().wait()

    async def think(self, session: str) -> str:
        await self.cancelled.wait()
        return "end_turn" if BROKEN == "not cancelled" else "cancelled"

    async def read(self, session: str) -> None:
        update = acp.start_tool_call("call-1", "Read", kind="read")
        await self.conn.session_update(session_id=session, update=update)
        if (self.caps.fs.read_text_file or BROKEN == "fs anyway") and BROKEN != "own files":
            name = "greeting.txt" if BROKEN == "relative path" else f"{self.cwd}/greeting.txt"
            with suppress(acp.RequestError):
                await self.conn.read_text_file(session_id=session, path=name)
        if BROKEN != "open call":
            done = acp.update_tool_call("call-1", status="completed")
            await self.conn.session_update(session_id=session, update=done)

    async def write(self, session: str) -> None:
        path = f"{self.cwd}/out.txt"
        if BROKEN != "own files":
            await self.conn.write_text_file(session_id=session, path=path, content="hello")

    async def ask(self, session: str) -> str | None:
        if BROKEN == "unasked":
            return None
        kinds = ["allow_once", "reject_once"]
        options = [
            schema.PermissionOption.model_validate({"optionId": one, "name": one, "kind": one})
            for one in kinds
        ]
        answer = await self.conn.request_permission(
            session_id=session,
            tool_call=acp.update_tool_call("call-1", title="Write", kind="edit"),
            options=options,
        )
        if answer.outcome.outcome == "cancelled" and BROKEN != "not cancelled":
            return "cancelled"
        if getattr(answer.outcome, "option_id", "") == "allow_once" or BROKEN == "deaf":
            await self.write(session)
        return None

    async def run(self, session: str) -> None:
        if not self.caps.terminal and BROKEN != "terminal anyway":
            return
        try:
            made = await self.conn.create_terminal(
                session_id=session, command="echo", args=["hello"]
            )
        except acp.RequestError:
            return
        given = {"session_id": session, "terminal_id": made.terminal_id}
        await self.conn.wait_for_terminal_exit(**given)
        output = await self.conn.terminal_output(**given)
        assert output.output == "hello\n"
        if BROKEN != "no release":
            await self.conn.release_terminal(**given)

    async def plan(self, session: str) -> None:
        entries = [] if BROKEN == "empty plan" else [acp.plan_entry("Say hello")]
        await self.conn.session_update(session_id=session, update=acp.update_plan(entries))


def main() -> None:
    if BROKEN == "gone":
        sys.exit("no such model")
    if BROKEN == "hung":
        asyncio.run(asyncio.Event().wait())
    if BROKEN == "any method":
        answer_everything()
    agent: Any = Agent()
    if BROKEN == "no session":
        agent.new_session = anything
    asyncio.run(acp.run_agent(agent))


def answer_everything() -> None:
    """Has a result for whatever it is asked; the SDK would refuse what it does not know."""
    for line in sys.stdin:
        result = {"protocolVersion": 1, "agentCapabilities": {}, "sessionId": "s"}
        answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}
        print(json.dumps(answer), flush=True)


async def anything(*_: Any, **__: Any) -> dict[str, Any]:
    return {}


if __name__ == "__main__":
    main()
