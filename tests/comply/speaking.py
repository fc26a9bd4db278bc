"""What the agents of the tests have in common: JSON-RPC over stdio, a line a message.

It needs nothing but the standard library, and so starts fast.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

BROKEN = sys.argv[1] if len(sys.argv) > 1 else ""
"""The rule that the agent is told to break."""


class Refused(Exception):
    """A JSON-RPC error to answer with, or that the client answered with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Speaker:
    """One side of a connection: what its `methods` return or raise is answered."""

    def __init__(self) -> None:
        self.asked = 0
        self.logged_in = True
        self.methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}

    def serve(self) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))

    def say(self, message: dict[str, Any]) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.notice(message["method"], message["params"])
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
        self.finish({"id": message["id"], **answer})

    def notice(self, method: str, params: dict[str, Any]) -> None:
        """A notification came."""

    def finish(self, answer: dict[str, Any]) -> None:
        self.say(answer)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A request to the client; what else comes until its answer is taken. Raises Refused."""
        self.asked += 1
        self.say({"id": self.asked, "method": method, "params": params})
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

    def login(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["methodId"] != "login" and BROKEN != "any login":
            raise Refused(-32602, "there is no such login")
        if BROKEN == "no login":
            raise Refused(-32603, "the login is down")
        self.logged_in = True
        return {}

    def logout(self, params: dict[str, Any]) -> dict[str, Any]:
        self.logged_in = BROKEN == "stays in"
        return {}

    def update(self, session: str, update: dict[str, Any]) -> None:
        self.say({"method": "session/update", "params": {"sessionId": session, "update": update}})
