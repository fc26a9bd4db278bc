"""An agent that keeps every rule, or breaks the one that it is told to: `agent.py [MUTATION]`.

It needs nothing but the standard library, and so starts fast. `test_stdio` holds what it and the
runner say to each other against the official SDK's models.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BROKEN = sys.argv[1] if len(sys.argv) > 1 else ""
PROTOCOL_VERSION = 1
KINDS = {"text", "image", "audio", "resource", "resource_link"}
MODES = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
COMMAND = {"name": "web", "description": "" if BROKEN == "bare command" else "Search the web"}
CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
}


class Refused(Exception):
    """A JSON-RPC error to answer with, or that the client answered with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Cancelled(Exception):
    """The turn was cancelled."""


def write(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


class Agent:
    """Does what a prompt's words ask for. One turn at a time."""

    def __init__(self) -> None:
        self.caps: dict[str, Any] = {}
        self.sessions: dict[str, list[dict[str, Any]]] = {}
        self.cwd = ""
        self.servers: list[dict[str, Any]] = []
        self.cancelled = False
        self.asked = 0
        self.methods = {
            "initialize": self.initialize,
            "session/new": self.new_session,
            "session/load": self.load_session,
            "session/set_mode": self.set_mode,
            "session/prompt": self.prompt,
        }

    # --- messages -------------------------------------------------------------------------------

    def serve(self) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))

    def take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.cancelled |= message["method"] == "session/cancel"
            if BROKEN == "strict" and message["method"].startswith("_"):
                sys.exit("unknown notification")
            return
        try:
            method = self.methods.get(message["method"])
            if method is None and BROKEN != "any method":
                raise Refused(-32601, "Method not found")
            answer = {"result": method(message["params"]) if method else {}}
        except Refused as refused:
            answer = {"error": refused.error}
        except (KeyError, TypeError) as error:
            code = -32603 if BROKEN == "internal" else -32602
            answer = {"error": {"code": code, "message": f"Invalid params: {error}"}}
        write({"id": message["id"], **answer})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A request to the client; what else comes until its answer is taken. Raises Refused."""
        self.asked += 1
        write({"id": self.asked, "method": method, "params": params})
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message:
                self.take(message)
            elif message["id"] == self.asked:
                if "error" in message:
                    raise Refused(message["error"]["code"], message["error"]["message"])
                result: dict[str, Any] = message["result"] or {}
                return result
        sys.exit("the client is gone")

    def tell(self, session: str, update_kind: str, **fields: Any) -> None:
        update = {"sessionUpdate": update_kind, **fields}
        if BROKEN == "foreign update":
            session = "another"
        if update_kind in ("user_message_chunk", "agent_message_chunk"):
            self.sessions.setdefault(session, []).append(update)
        write({"method": "session/update", "params": {"sessionId": session, "update": update}})

    # --- sessions -------------------------------------------------------------------------------

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        self.caps = params["clientCapabilities"]
        known = params["protocolVersion"] if BROKEN == "any version" else PROTOCOL_VERSION
        return {"protocolVersion": known, "agentCapabilities": CAPABILITIES}

    def new_session(self, params: dict[str, Any]) -> dict[str, Any]:
        if BROKEN == "no session":
            return {}
        if BROKEN == "no meta" and "_meta" in params:
            raise Refused(-32602, "unknown field _meta")
        if BROKEN == "no mcp" and params["mcpServers"]:
            raise Refused(-32602, "MCP servers are not supported")
        self.cwd = params["cwd"]
        if BROKEN != "shared server" or params["mcpServers"]:
            self.servers = params["mcpServers"]
        number = 1 if BROKEN == "one session" else len(self.sessions) + 1
        session = f"session-{number}"
        self.sessions[session] = []
        self.tell(session, "available_commands_update", availableCommands=[COMMAND])
        return {"sessionId": session, "modes": {"currentModeId": "ask", "availableModes": MODES}}

    def load_session(self, params: dict[str, Any]) -> dict[str, Any]:
        session = params["sessionId"]
        if session not in self.sessions and BROKEN != "any session":
            raise Refused(-32602, "there is no such session")
        for update in [] if BROKEN == "no replay" else list(self.sessions.get(session, [])):
            write({"method": "session/update", "params": {"sessionId": session, "update": update}})
        return {}

    def set_mode(self, params: dict[str, Any]) -> dict[str, Any]:
        mode = params["modeId"]
        if mode not in [one["id"] for one in MODES] and BROKEN != "any mode":
            raise Refused(-32602, "there is no such mode")
        if BROKEN != "silent mode":
            self.tell(params["sessionId"], "current_mode_update", currentModeId=mode)
        return {}

    # --- turns ----------------------------------------------------------------------------------

    def prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        self.cancelled &= BROKEN == "stays cancelled"
        session, blocks = params["sessionId"], params["prompt"]
        if session not in self.sessions and BROKEN != "any session":
            raise Refused(-32602, "there is no such session")
        if BROKEN == "one turn" and self.sessions[session]:
            raise Refused(-32600, "the session is over")
        if any(block["type"] == BROKEN or block["type"] not in KINDS for block in blocks):
            raise Refused(-32602, "content of this type is not taken")
        if BROKEN == "crash":
            os._exit(3)
        if BROKEN == "chatty":
            print("starting a turn", flush=True)
        for block in blocks:
            self.tell(session, "user_message_chunk", content=block)
        text = blocks[0]["text"].lower()
        words = {
            "think": self.think,
            "permission": self.permission,
            "secret_word": self.call_tool,
            "read": self.read,
            "write": self.write,
            "run": self.run,
            "plan": self.plan,
        }
        doing = next((work for word, work in words.items() if word in text), self.hello)
        try:
            doing(session)
        except Cancelled:
            return {"stopReason": "end_turn" if BROKEN == "not cancelled" else "cancelled"}
        return {"stopReason": "cancelled" if self.cancelled else "end_turn"}

    def hello(self, session: str) -> None:
        self.tell(session, "agent_message_chunk", content={"type": "text", "text": "Hello"})
        if self.servers:
            with mcp(self.servers[0]):
                pass

    def think(self, session: str) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))
            if self.cancelled:
                raise Cancelled

    @contextmanager
    def tool_call(self, session: str, title: str, kind: str) -> Iterator[None]:
        call = {"toolCallId": f"call-{self.asked + 1}"}
        kind = "reading" if BROKEN == "own kind" else kind
        self.tell(session, "tool_call", **call, title=title, kind=kind, status="in_progress")
        yield
        if BROKEN != "open call":
            self.tell(session, "tool_call_update", **call, status="completed")

    def read(self, session: str) -> None:
        with self.tool_call(session, "Read", "read"):
            if self.caps["fs"]["readTextFile"] or BROKEN == "fs anyway":
                name = "greeting.txt" if BROKEN == "relative path" else f"{self.cwd}/greeting.txt"
                try:
                    self.ask("fs/read_text_file", sessionId=session, path=name)
                except Refused as refused:
                    print(refused, file=sys.stderr)

    def write(self, session: str) -> None:
        content = "" if BROKEN == "empty file" else "hello"
        path = f"{self.cwd}/out.txt"
        self.ask("fs/write_text_file", sessionId=session, path=path, content=content)

    def permission(self, session: str) -> None:
        kinds = ["allow_once"] if BROKEN == "no way out" else ["allow_once", "reject_once"]
        answer = self.ask(
            "session/request_permission",
            sessionId=session,
            toolCall={"toolCallId": "call-1", "title": "Write", "kind": "edit"},
            options=[{"optionId": one, "name": one, "kind": one} for one in kinds],
        )["outcome"]
        if answer["outcome"] == "cancelled":
            raise Cancelled
        if answer["optionId"] == "allow_once" or BROKEN == "deaf":
            self.write(session)

    def run(self, session: str) -> None:
        if not self.caps["terminal"] and BROKEN != "terminal anyway":
            return
        try:
            made = self.ask("terminal/create", sessionId=session, command="echo", args=["hello"])
        except Refused:
            return
        given = {"sessionId": session, "terminalId": made["terminalId"]}
        self.ask("terminal/wait_for_exit", **given)
        assert self.ask("terminal/output", **given)["output"] == "hello\n"
        if BROKEN != "no release":
            self.ask("terminal/release", **given)

    def plan(self, session: str) -> None:
        entry = {"content": "Say hello", "priority": "medium", "status": "pending"}
        self.tell(session, "plan", entries=[] if BROKEN == "empty plan" else [entry])

    def call_tool(self, session: str) -> None:
        if self.servers:
            name = "secret" if BROKEN == "other tool" else "secret_word"
            with self.tool_call(session, name, "other"), mcp(self.servers[0]) as call:
                call("tools/call", name=name, arguments={})


@contextmanager
def mcp(server: dict[str, Any]) -> Iterator[Any]:
    """A client of an MCP server over stdio, initialised."""
    env = {**os.environ, **{one["name"]: one["value"] for one in server["env"]}}
    with subprocess.Popen(
        [server["command"], *server["args"]],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to, answers = process.stdin, process.stdout

        def say(**message: Any) -> None:
            to.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            to.flush()

        def call(method: str, **params: Any) -> Any:
            say(id=1, method=method, params=params)
            return json.loads(answers.readline())

        info = {"name": "" if BROKEN == "no name" else "agent", "version": "1"}
        call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        say(method="notifications/initialized")
        call("tools/list")
        yield call
        to.close()


def main() -> None:
    if BROKEN == "gone":
        sys.exit("no such model")
    if BROKEN == "hung":
        time.sleep(60)
    Agent().serve()


if __name__ == "__main__":
    main()
