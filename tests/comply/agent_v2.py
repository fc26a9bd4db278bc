"""An agent of the published preview, version 2, that keeps every rule, or breaks the one that it is
told to: `agent_v2.py [MUTATION]`. Like `agent.py`, which speaks version 1."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Run as a file, it has no package.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.comply.speaking import BROKEN, Refused, Speaker

LOGIN = {"type": "agent", "methodId": "login", "name": "Log in"}
CAPABILITIES: dict[str, Any] = {"session": {"prompt": {}, "mcp": {"stdio": {}}, "delete": {}}}
VALUES = ["small", "large"]
ENTRY = {"content": "Say hello", "priority": "medium", "status": "pending"}


class Agent(Speaker):
    """Accepts a prompt, and then does what its words ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.after: Callable[[], None] | None = None
        """What is done once the request under way is answered."""
        self.sessions: dict[str, list[dict[str, Any]]] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.value: dict[str, str] = {}
        self.caps: dict[str, Any] = {}
        self.cancelled = False
        self.call: str | None = None
        """The tool call under way that can be cancelled."""
        self.messages = 0
        self.methods = {
            "initialize": self.initialize,
            "auth/login": self.login,
            "auth/logout": self.logout,
            "session/new": self.new_session,
            "session/list": self.list_sessions,
            "session/delete": self.delete_session,
            "session/resume": self.resume_session,
            "session/close": self.close_session,
            "session/set_config_option": self.set_config,
            "session/prompt": self.prompt,
            "tool_call/cancel": self.cancel_call,
        }

    # --- messages -------------------------------------------------------------------------------

    def notice(self, method: str, params: dict[str, Any]) -> None:
        self.cancelled |= method == "session/cancel"
        if BROKEN == "strict" and method.startswith(("_", "$/")):
            sys.exit("unknown notification")

    def finish(self, answer: dict[str, Any]) -> None:
        after, self.after = self.after, None
        if BROKEN == "old turns" and after is not None:
            after()
            after = None
        self.say(answer)
        if after is not None:
            after()

    def tell(self, session: str, tag: str, **fields: Any) -> None:
        update = {"sessionUpdate": tag, **fields}
        if tag in ("user_message", "agent_message"):
            self.sessions.setdefault(session, []).append(update)
        self.update(session, update)

    # --- sessions -------------------------------------------------------------------------------

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        self.caps = params.get("capabilities") or {}
        version = params["protocolVersion"] if BROKEN == "any version" else 2
        info = {"name": "agent", "version": "1"}
        told = {} if BROKEN == "nameless" else {"info": info}
        offered = {"capabilities": CAPABILITIES, "authMethods": [LOGIN]}
        return {"protocolVersion": version, **told, **offered}

    def new_session(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.logged_in:
            raise Refused(-32000, "log in first")
        if BROKEN == "no session":
            raise Refused(-32603, "no session today")
        if BROKEN == "no meta" and "_meta" in params:
            raise Refused(-32602, "unknown field _meta")
        number = 1 if BROKEN == "one session" else len(self.sessions) + 1
        session = f"session-{number}"
        self.sessions[session] = []
        self.listed[session] = {"sessionId": session, "cwd": params["cwd"]}
        self.value[session] = "small"
        return {"sessionId": session, "configOptions": self.options(session)}

    def options(self, session: str) -> list[dict[str, Any]]:
        values = [{"value": one, "name": one.title()} for one in VALUES]
        about = {"configId": "model", "name": "Model", "type": "select", "options": values}
        return [about | {"currentValue": self.value[session]}]

    def set_config(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["value"] not in VALUES and BROKEN != "any option":
            raise Refused(-32602, "there is no such value")
        if BROKEN != "fixed option":
            self.value[params["sessionId"]] = params["value"]
        return {"configOptions": self.options(params["sessionId"])}

    def list_sessions(self, params: dict[str, Any]) -> dict[str, Any]:
        if BROKEN == "no list":
            raise Refused(-32601, "Method not found")
        cwd = None if BROKEN == "every folder" else params.get("cwd")
        return {"sessions": [one for one in self.listed.values() if cwd in (None, one["cwd"])]}

    def delete_session(self, params: dict[str, Any]) -> dict[str, Any]:
        if BROKEN != "keeps all":
            self.listed.pop(params["sessionId"], None)
        return {}

    def resume_session(self, params: dict[str, Any]) -> dict[str, Any]:
        session = params["sessionId"]
        if session not in self.sessions and BROKEN != "any session":
            raise Refused(-32002, "there is no such session")
        start = params.get("replayFrom")
        if start and start["type"] != "start" and BROKEN != "any cursor":
            raise Refused(-32602, "there is no such place")
        if (start and BROKEN != "no replay") or BROKEN == "replays":
            for update in list(self.sessions.get(session, [])):
                self.update(session, update)
        if BROKEN != "no snapshot":
            self.state(session, "idle")
        return {"configOptions": self.options(session) if session in self.value else []}

    def close_session(self, params: dict[str, Any]) -> dict[str, Any]:
        if BROKEN != "works on":
            self.cancelled = True
            self.settle(params["sessionId"])
        return {}

    # --- turns ----------------------------------------------------------------------------------

    def prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        session, blocks = params["sessionId"], params["prompt"]
        if session not in self.sessions and BROKEN != "any session":
            raise Refused(-32002, "there is no such session")
        if any(block["type"] == BROKEN for block in blocks):
            raise Refused(-32602, "content of this type is not taken")
        if BROKEN == "one turn" and self.sessions[session]:
            raise Refused(-32600, "the session is over")
        if BROKEN == "chatty":
            print("starting", flush=True)
        self.messages += 1
        message = f"user-{self.messages}"

        def work() -> None:
            echoed = f"other-{self.messages}" if BROKEN == "other id" else message
            if BROKEN != "no echo":
                self.tell(session, "user_message", messageId=echoed, content=blocks)
            self.turn(session, blocks[0]["text"].lower())

        self.after = work
        return {"messageId": message}

    def state(self, session: str, state: str, **more: Any) -> None:
        self.tell(session, "state_update", state=state, **more)

    def turn(self, session: str, text: str) -> None:
        self.cancelled = False
        self.working = True
        if BROKEN != "never running":
            self.state(session, "running")
        words = {
            "think": self.think,
            "permission": self.permission,
            "plan": self.plan,
            "form": self.choose,
            "run": self.run,
        }
        doing = next((work for word, work in words.items() if word in text), self.hello)
        doing(session)
        self.settle(session)

    def settle(self, session: str) -> None:
        """Report that the turn is over, once."""
        if not self.working:
            return
        self.working = False
        reason = "cancelled" if self.cancelled and BROKEN != "not cancelled" else "end_turn"
        told = {} if BROKEN == "no reason" else {"stopReason": reason}
        if BROKEN != "never idle":
            self.state(session, "idle", **told)

    working = False

    def hello(self, session: str) -> None:
        content = [{"type": "text", "text": "Hello"}]
        if BROKEN != "silent":
            self.tell(session, "agent_message", messageId=f"a{self.messages}", content=content)

    def think(self, session: str) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))
            if self.cancelled:
                return

    def plan(self, session: str) -> None:
        entries = [] if BROKEN == "empty plan" else [ENTRY]
        plan = {"type": "items", "planId": "p1", "entries": entries}
        self.tell(session, "plan_update", plan=plan)

    def choose(self, session: str) -> None:
        if "form" not in (self.caps.get("elicitation") or {}) and BROKEN != "forms anyway":
            return
        colour = {"type": "object", "properties": {"colour": {"type": "string"}}}
        schema = {} if BROKEN == "empty form" else {"requestedSchema": colour}
        given = {"sessionId": session, "mode": "form", "message": "Which colour?"}
        self.state(session, "requires_action")
        try:
            answer = self.ask("elicitation/create", **given, **schema)
        except Refused:
            return
        self.state(session, "running")
        # Whoever wants an answer leaves the turn as it is.
        self.working = answer["action"] != "decline" or BROKEN != "wants an answer"

    def run(self, session: str) -> None:
        self.call = f"call-{self.messages}"
        call = {"toolCallId": self.call}
        cancel: dict[str, Any] = {"capabilities": {"cancel": {}}}
        about = {"title": "Run", "kind": "execute", "status": "in_progress"}
        self.tell(session, "tool_call_update", **call, **about, **cancel)
        for line in sys.stdin:
            self.take(json.loads(line))
            if self.call is None or self.cancelled:
                break
        if BROKEN != "open call":
            ended = {"status": "cancelled", "capabilities": None}
            self.tell(session, "tool_call_update", **call, **ended)

    def cancel_call(self, params: dict[str, Any]) -> dict[str, Any]:
        if BROKEN == "no cancel":
            raise Refused(-32603, "it goes on")
        if params["toolCallId"] != self.call and BROKEN != "any call":
            raise Refused(-32602, "there is no such call that can be cancelled")
        self.call = None
        return {}

    def permission(self, session: str) -> None:
        kinds = ["allow_once"] if BROKEN == "no way out" else ["allow_once", "reject_once"]
        call = {"toolCallId": f"call-{self.asked + 1}", "title": "Write", "kind": "edit"}
        self.tell(session, "tool_call_update", **call, status="pending")
        if BROKEN != "no action":
            self.state(session, "requires_action")
        answer = self.ask(
            "session/request_permission",
            sessionId=session,
            title="Write the file?",
            subject={"type": "tool_call", "toolCall": call},
            options=[{"optionId": one, "name": one, "kind": one} for one in kinds],
        )["outcome"]
        self.state(session, "running")
        allowed = answer.get("optionId") == "allow_once" or BROKEN == "deaf"
        done = "pending" if BROKEN == "open call" else "completed" if allowed else "failed"
        self.tell(session, "tool_call_update", toolCallId=call["toolCallId"], status=done)


def main() -> None:
    Agent().serve()


if __name__ == "__main__":
    main()
