"""The agent, with one kind of its messages changed: `garbled.py CHANGE [agent's arguments]`.

CHANGE is JSON, as `tests.comply.changes` has it.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

CHANGE: dict[str, Any] = json.loads(sys.argv.pop(1))
asked: dict[str, str] = {}
"""The methods of the client's requests, by id."""


def is_meant(message: dict[str, Any]) -> bool:
    on = CHANGE["on"]
    if on["answer"]:
        return "result" in message and asked.get(json.dumps(message["id"])) == on["method"]
    tag = message.get("params", {}).get("update", {}).get("sessionUpdate")
    return bool(message.get("method") == on["method"] and tag == on["tag"])


def framed(message: dict[str, Any], how: str) -> list[Any]:
    """The lines in place of the message; text is no JSON."""
    same = dict(message)
    error = {"code": -32603, "message": "x"}
    match how:
        case "no jsonrpc":
            del same["jsonrpc"]
        case "old jsonrpc":
            same["jsonrpc"] = "1.0"
        case "batch":
            return [[same]]
        case "no json":
            return [json.dumps(same)[:-1]]
        case "twice":
            return [same, same]
        case "text before":
            return ["working on it", same]
        case "no member":
            return [{"jsonrpc": "2.0"}, same]
        case "text id":
            same["id"] = f"x{same['id']}"
        case "other id":
            return [same | {"id": 987654}, same]
        case "no id":
            del same["id"]
        case "true id":
            same["id"] = True
        case "both":
            same["error"] = error
        case "neither":
            del same["result"]
        case "bad error":
            del same["result"]
            same["error"] = {"code": "-1"}
    return [same]


def changed(message: dict[str, Any]) -> list[Any]:
    if not is_meant(message):
        return [message]
    if "frame" in CHANGE:
        return framed(message, CHANGE["frame"])
    message = json.loads(json.dumps(message))
    inner: Any = message
    for key in CHANGE["at"][:-1]:
        try:
            inner = inner[key]
        except (KeyError, IndexError, TypeError):
            return [message]
    key = CHANGE["at"][-1]
    known = key in inner if isinstance(inner, dict) else key < len(inner)
    if known and "out" in CHANGE:
        del inner[key]
    elif known:
        inner[key] = CHANGE["value"]
    return [message]


def main() -> None:
    name = sys.argv.pop(1)
    sys.path.insert(0, str(Path(__file__).parent))
    agent: Any = importlib.import_module(name)
    take = agent.Agent.take

    def noted(self: Any, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            asked[json.dumps(message["id"])] = message["method"]
        take(self, message)

    def say(self: Any, message: dict[str, Any]) -> None:
        for one in changed({"jsonrpc": "2.0", **message}):
            print(one if isinstance(one, str) else json.dumps(one), flush=True)

    agent.Agent.take = noted
    agent.Agent.say = say
    agent.main()


if __name__ == "__main__":
    main()
