"""JSON-RPC 2.0: checks decoded requests and builds error responses."""

from typing import Any, NamedTuple, cast

import orjson

from schemas.errors import ErrorCode

MEMBERS = frozenset({"jsonrpc", "method", "params", "id"})
SAFE_ID = 2**53
DEPTH_MAX = 100
"""The limit of nesting in params: much deeper values can't be serialised."""


class InvalidRpcRequest(Exception):
    """Not a JSON-RPC 2.0 request object; `id` is the request's, if it is valid."""

    def __init__(self, message: str, id: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.id = id


class InvalidParams(Exception):
    """A request object, but its params are not given by name."""

    def __init__(self, message: str, id: Any, notification: bool) -> None:
        super().__init__(message)
        self.message = message
        self.id = id
        self.notification = notification


class Call(NamedTuple):
    """A checked request. A notification gets no response."""

    method: str
    params: dict[str, Any]
    id: Any
    notification: bool


def check(request: Any) -> Call:
    """A decoded request as a Call (JSON-RPC 2.0, section 4). Params that are null are absent.

    Raises InvalidRpcRequest, or InvalidParams for params by position, which no method accepts.
    """
    if type(request) is not dict:
        raise InvalidRpcRequest("A request must be an object")
    id = request.get("id")
    if not (id is None or isinstance(id, str) or _is_number(id)):
        raise InvalidRpcRequest(
            "id must be at most 2^53 in size, or a whole number from -2^63 to 2^64 - 1: "
            "another could not be echoed exactly"
            if isinstance(id, float)
            else "id must be a string, a number or null"
        )
    if request.get("jsonrpc") != "2.0":
        raise InvalidRpcRequest('jsonrpc must be "2.0"', id)
    method = request.get("method")
    if not isinstance(method, str):
        raise InvalidRpcRequest("method must be a string", id)
    if not request.keys() <= MEMBERS:
        unknown = ", ".join(sorted(request.keys() - MEMBERS))
        raise InvalidRpcRequest(f"Unknown members: {unknown[:200]}", id)
    notification = "id" not in request
    params = request.get("params")
    if params is None:
        params = {}
    elif isinstance(params, list):
        raise InvalidParams(
            "params must be given by name, as an object, not by position", id, notification
        )
    elif not isinstance(params, dict):
        raise InvalidRpcRequest("params must be an object", id)
    return Call(method, cast(dict[str, Any], params), id, notification)


def is_deep(params: Any) -> bool:
    """Whether decoded JSON nests deeper than `DEPTH_MAX`."""
    try:
        text = orjson.dumps(params)
        if text.count(b"[") + text.count(b"{") <= DEPTH_MAX:
            return False
    except orjson.JSONEncodeError:
        # orjson raises this for values that nest too deeply.
        return True
    level: list[dict[str, Any] | list[Any]] = [[params]]
    for _ in range(DEPTH_MAX + 1):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
    return bool(level)


def _is_number(id: Any) -> bool:
    if isinstance(id, float):
        # A larger one may be a whole number that has lost digits, and can't be echoed exactly.
        return abs(id) <= SAFE_ID
    return isinstance(id, int) and not isinstance(id, bool)


def error(code: ErrorCode, message: str, data: Any = None, id: Any = None) -> dict[str, Any]:
    """An error response."""
    body: dict[str, Any] = {"code": int(code), "message": message}
    if data is not None:
        body["data"] = data
    return {"jsonrpc": "2.0", "error": body, "id": id}
