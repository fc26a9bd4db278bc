"""An agent that keeps every rule, or breaks the one that it is told to: `agent.py [MUTATION]`.

`test_stdio` holds what it and the
runner say to each other against the official SDK's models.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

# Run as a file, it has no package.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.comply.speaking import BROKEN, Refused, Speaker

PROTOCOL_VERSION = 1
KINDS = {"text", "image", "audio", "resource", "resource_link"}
MODES = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
COMMAND = {"name": "web"} | ({} if BROKEN == "bare command" else {"description": "Search it"})
DEFAULTS = {"model": "small", "effort": "low", "fast": False}
LOGIN = {"id": "login", "name": "Log in"}
CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "sessionCapabilities": {
        name: {} for name in ("list", "delete", "resume", "close", "additionalDirectories")
    },
    "auth": {"logout": {}},
}


class Cancelled(Exception):
    """The turn was cancelled."""


class Agent(Speaker):
    """Does what a prompt's words ask for. One turn at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.caps: dict[str, Any] = {}
        self.sessions: dict[str, list[dict[str, Any]]] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.config: dict[str, dict[str, Any]] = {}
        self.trusted = False
        self.cwd = self.text = ""
        self.servers: list[dict[str, Any]] = []
        self.cancelled = False
        self.withdrawn = False
        self.prompted: Any = None
        """The id of the prompt under way."""
        self.methods = {
            "initialize": self.initialize,
            "authenticate": self.login,
            "logout": self.logout,
            "session/list": self.list_sessions,
            "session/delete": self.delete_session,
            "session/resume": self.resume_session,
            "session/close": self.close_session,
            "session/set_config_option": self.set_config,
            "session/new": self.new_session,
            "session/load": self.load_session,
            "session/set_mode": self.set_mode,
            "session/prompt": self.prompt,
        }

    # --- messages -------------------------------------------------------------------------------

    def take(self, message: dict[str, Any]) -> None:
        if message["method"] == "session/prompt":
            self.prompted = message.get("id")
        super().take(message)

    def notice(self, method: str, params: dict[str, Any]) -> None:
        self.cancelled |= method == "session/cancel"
        if method == "$/cancel_request":
            if BROKEN == "cancels anything":
                sys.exit("there is no such request")
            self.withdrawn |= params["requestId"] == self.prompted
        if BROKEN == "strict" and method.startswith("_"):
            sys.exit("unknown notification")

    def tell(self, session: str, update_kind: str, **fields: Any) -> None:
        update = {"sessionUpdate": update_kind, **fields}
        if BROKEN == "foreign update":
            session = "another"
        if update_kind in ("user_message_chunk", "agent_message_chunk"):
            self.sessions.setdefault(session, []).append(update)
        self.update(session, update)

    # --- sessions -------------------------------------------------------------------------------

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        self.caps = params["clientCapabilities"]
        known = params["protocolVersion"] if BROKEN == "any version" else PROTOCOL_VERSION
        return {
            "protocolVersion": known,
            "agentCapabilities": CAPABILITIES,
            "authMethods": [LOGIN],
            "agentInfo": {"name": "agent", "version": "1"},
        }

    def new_session(self, params: dict[str, Any]) -> dict[str, Any]:
        if BROKEN == "no session":
            return {}
        if BROKEN == "no meta" and "_meta" in params:
            raise Refused(-32602, "unknown field _meta")
        if BROKEN == "no mcp" and params["mcpServers"]:
            raise Refused(-32602, "MCP servers are not supported")
        if not self.logged_in:
            raise Refused(-32000, "log in first")
        if BROKEN == "one folder" and params.get("additionalDirectories"):
            raise Refused(-32602, "one folder is enough")
        self.cwd = str(Path.cwd()) if BROKEN == "own folder" else params["cwd"]
        if BROKEN != "shared server" or params["mcpServers"]:
            self.servers = params["mcpServers"]
        number = 1 if BROKEN == "one session" else len(self.sessions) + 1
        session = f"session-{number}"
        self.sessions[session] = []
        more = params.get("additionalDirectories", [])
        roots = more[:1] if BROKEN == "first folder" else more
        about = {"cwd": params["cwd"], "additionalDirectories": roots}
        self.listed[session] = {"sessionId": session, **about}
        self.config[session] = dict(DEFAULTS)
        self.tell(session, "available_commands_update", availableCommands=[COMMAND])
        modes = {"currentModeId": "ask", "availableModes": MODES}
        return {"sessionId": session, "modes": modes, "configOptions": self.options(session)}

    def options(self, session: str) -> list[dict[str, Any]]:
        def select(id: str, *values: str) -> dict[str, Any]:
            options = [{"value": one, "name": one.title()} for one in values]
            return {"id": id, "name": id.title(), "type": "select", "options": options}

        found = [select("model", "small", "large"), select("effort", "low", "high")]
        offered = (self.caps.get("session") or {}).get("configOptions") or {}
        if "boolean" in offered or BROKEN == "boolean anyway":
            found.append({"id": "fast", "name": "Fast", "type": "boolean"})
        if BROKEN == "unnamed option":
            del found[-1]["name"]
        values = self.config.get(session, DEFAULTS)
        return [one | {"currentValue": values[one["id"]]} for one in found]

    def set_config(self, params: dict[str, Any]) -> dict[str, Any]:
        session, id, value = params["sessionId"], params["configId"], params["value"]
        option = next((one for one in self.options(session) if one["id"] == id), None)
        known = option and (
            value in [one["value"] for one in option.get("options", [])]
            or (option["type"] == "boolean" and isinstance(value, bool))
        )
        if not known and BROKEN != "any option":
            raise Refused(-32602, "there is no such option or value")
        if BROKEN != "fixed option":
            self.config[session][id] = value
        options = self.options(session)
        return {"configOptions": options[:1] if BROKEN == "one option" else options}

    def list_sessions(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("cursor") is not None and BROKEN != "any cursor":
            raise Refused(-32602, "there is no such cursor")
        cwd = None if BROKEN == "every folder" else params.get("cwd")
        return {"sessions": [one for one in self.listed.values() if cwd in (None, one["cwd"])]}

    def delete_session(self, params: dict[str, Any]) -> dict[str, Any]:
        session = params["sessionId"]
        if session not in self.listed and BROKEN == "delete once":
            raise Refused(-32602, "there is no such session")
        if BROKEN != "keeps all":
            self.listed.pop(session, None)
        return {}

    def resume_session(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["sessionId"] not in self.sessions and BROKEN != "any session":
            raise Refused(-32602, "there is no such session")
        if BROKEN == "replays":
            self.load_session(params)
        if BROKEN == "no way back":
            self.sessions.pop(params["sessionId"])
        return {"configOptions": self.options(params["sessionId"])}

    def close_session(self, params: dict[str, Any]) -> dict[str, Any]:
        self.cancelled |= BROKEN != "works on"
        return {}

    def load_session(self, params: dict[str, Any]) -> dict[str, Any]:
        session = params["sessionId"]
        if session not in self.sessions and BROKEN != "any session":
            raise Refused(-32602, "there is no such session")
        for update in [] if BROKEN == "no replay" else list(self.sessions.get(session, [])):
            self.update(session, update)
        return {}

    def set_mode(self, params: dict[str, Any]) -> dict[str, Any]:
        mode = params["modeId"]
        if BROKEN == "fixed mode" or (BROKEN == "first mode" and mode != "ask"):
            raise Refused(-32603, "the mode can't be set")
        if mode not in [one["id"] for one in MODES] and BROKEN != "any mode":
            raise Refused(-32602, "there is no such mode")
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
        text = self.text = blocks[0]["text"].lower()
        words = {
            "think": self.think,
            "permission": self.permission,
            "secret_word": self.call_tool,
            "/compact": self.compact,
            "form": self.choose,
            "read": self.read,
            "write": self.write,
            "run": self.run,
            "plan": self.plan,
        }
        doing = next((work for word, work in words.items() if word in text), self.hello)
        try:
            doing(session)
        except Cancelled:
            if self.withdrawn:
                self.withdrawn = False
                raise Refused(-1 if BROKEN == "own code" else -32800, "cancelled") from None
            return {"stopReason": "end_turn" if BROKEN == "not cancelled" else "cancelled"}
        return {"stopReason": "cancelled" if self.cancelled else "end_turn"}

    def hello(self, session: str) -> None:
        self.tell(session, "agent_message_chunk", content={"type": "text", "text": "Hello"})
        if self.servers:
            with mcp(self.servers[0]):
                pass

        title = 7 if BROKEN == "odd title" else "Greeting"
        self.tell(session, "session_info_update", title=title)
        self.tell(session, "usage_update", used=53, size=0 if BROKEN == "no room" else 200)
        options = self.options(session)
        self.tell(session, "config_option_update", configOptions=options)
        if self.client("notices"):
            severity = "loud" if BROKEN == "bare notice" else "info"
            self.tell(session, "notice", severity=severity, title="Hello")

    def client(self, capability: str) -> bool:
        """Whether the client takes updates of this kind."""
        return BROKEN == "updates anyway" or capability in (self.caps.get("session") or {})

    def compact(self, session: str) -> None:
        if self.client("compaction"):
            ended = "in_progress" if BROKEN == "open compaction" else "completed"
            summary = {"type": "text", "text": "Hello was said"}
            given = {"compactionId": "c1"}
            self.tell(session, "compaction_update", **given, status="in_progress")
            self.tell(session, "compaction_summary_chunk", **given, content=summary)
            self.tell(session, "compaction_update", **given, status=ended)

    def choose(self, session: str) -> None:
        if "form" not in (self.caps.get("elicitation") or {}) and BROKEN != "forms anyway":
            return
        colour = {"type": "object", "properties": {"colour": {"type": "string"}}}
        schema = {} if BROKEN == "empty form" else {"requestedSchema": colour}
        given = {"sessionId": session, "mode": "form", "message": "Which colour?"}
        answer = self.ask("elicitation/create", **given, **schema)
        if answer["action"] == "decline" and BROKEN == "wants an answer":
            raise Refused(-32603, "no colour")

    def think(self, session: str) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))
            if self.cancelled or (self.withdrawn and BROKEN != "deaf to $"):
                raise Cancelled

    @contextmanager
    def tool_call(self, session: str, title: str, kind: str) -> Iterator[None]:
        call = {"toolCallId": f"call-{self.asked + 1}"}
        kind = "reading" if BROKEN == "own kind" else kind
        self.tell(session, "tool_call", **call, title=title, kind=kind, status="in_progress")
        yield
        status = "done" if BROKEN == "own status" else "completed"
        if BROKEN != "open call":
            self.tell(session, "tool_call_update", **call, status=status)

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
        path = f"{self.cwd}/{'next' if 'next.txt' in self.text else 'out'}.txt"
        self.ask("fs/write_text_file", sessionId=session, path=path, content=content)

    def permission(self, session: str) -> None:
        if self.trusted:
            return self.write(session)
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
            self.trusted = BROKEN == "trusting"
            self.write(session)
        return None

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

        info = {"name": "" if BROKEN.endswith("no name") else "agent", "version": "1"}
        meta: dict[str, Any] = {}
        if BROKEN.startswith("newest"):
            key = "io.modelcontextprotocol/"
            meta = {f"{key}protocolVersion": "2026-07-28", f"{key}clientCapabilities": {}}
            meta = {"_meta": meta | {f"{key}clientInfo": info}}
            call("server/discover", **meta)
        else:
            call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
            say(method="notifications/initialized")
        call("tools/list", **meta)
        yield partial(call, **meta)
        to.close()


def main() -> None:
    if BROKEN == "gone":
        sys.exit("no such model")
    if BROKEN == "hung":
        time.sleep(60)
    Agent().serve()


if __name__ == "__main__":
    main()
