"""`/mcp`: the tools over streamable HTTP, for callers as `POST /` takes them (design §7).

Stateless: there are no sessions, so nothing outlives a request that another caller could take over,
and clients don't notice a node's restart. Who calls is found out for each request, by the same door
as `POST /`. A GET, which would open a stream that never says anything, and a DELETE get 405 (MCP
2025-11-25, Transports). The SDK is imported at the first request, in a thread.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from starlette.types import Message, Receive, Scope, Send

from schemas import jsonrpc
from server.dispatch import Dispatcher, Origin
from server.domain.errors import Refusal
from server.identity import Caller
from server.tools import Call, CallFailed, Json
from server.transport import (
    Disconnected,
    Gate,
    InvalidRequest,
    is_json,
    read_body,
    refusal_response,
    respond,
)

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from server.mcp_server import Context

PATH = "/mcp"
CALLER = "cacp.caller"


class McpEndpoint:
    """An ASGI application. `stop` ends what it runs in the background."""

    def __init__(self, dispatcher: Dispatcher, gate: Gate, body_limit: int) -> None:
        self._dispatcher = dispatcher
        self._gate = gate
        self._body_limit = body_limit
        self._starting = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._manager: StreamableHTTPSessionManager | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers, caller = self._gate.enter(scope)
            body = await read_body(receive, headers, self._body_limit)
            _check(headers, body)
        except Disconnected:
            return
        except Refusal as refusal:
            await respond(send, *refusal_response(refusal))
            return
        manager = self._manager or await self._start()
        scope[CALLER] = caller
        await manager.handle_request(scope, _again(body, receive), send)

    async def stop(self) -> None:
        self._stopping.set()
        if self._running is not None:
            await self._running

    async def _start(self) -> "StreamableHTTPSessionManager":
        async with self._starting:
            if self._manager is None:
                manager = await anyio.to_thread.run_sync(self._make)
                running = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, running))
                await running.wait()
                self._manager = manager
            return self._manager

    def _make(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from server.mcp_server import make_server

        return StreamableHTTPSessionManager(
            make_server(self._call_of), stateless=True, max_request_body_size=self._body_limit
        )

    async def _run(self, manager: "StreamableHTTPSessionManager", running: asyncio.Event) -> None:
        # Its task group must be left by the task that entered it.
        async with manager.run():
            running.set()
            await self._stopping.wait()

    def _call_of(self, ctx: "Context") -> Call:
        assert ctx.request is not None
        return partial(call, self._dispatcher, ctx.request.scope[CALLER])


async def call(dispatcher: Dispatcher, caller: Caller, method: str, params: Json) -> Any:
    """One call through the door that `POST /` goes through. Raises CallFailed."""
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
    # json writes what arrived as it arrived; what is no JSON is for the dispatcher to refuse.
    answer = await dispatcher.answer(json.dumps(request).encode(), Origin(caller))
    assert answer is not None, "a request with an id is answered"
    response = orjson.loads(answer)
    if "error" in response:
        raise CallFailed(response["error"]["message"], response["error"].get("data"))
    return response["result"]


def _check(headers: dict[bytes, bytes], body: bytes) -> None:
    """Raise InvalidRequest for what is no JSON-RPC message, of which the SDK would tell what its
    models complain of. What passes is JSON, and no deeper than `POST /` takes it."""
    if not is_json(headers.get(b"content-type")):
        raise InvalidRequest("Send Content-Type: application/json")
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidRequest("The body is not JSON") from None
    if isinstance(message, dict) and "method" not in message and "id" in message:
        return  # a response, of which a stateless server has no use
    try:
        asked = jsonrpc.check(message)
    except (jsonrpc.InvalidRequest, jsonrpc.InvalidParams) as error:
        raise InvalidRequest(
            f"The body should be one JSON-RPC message (MCP has no batches): {error.message}"
        ) from None
    if jsonrpc.is_deep(asked.params):
        raise InvalidRequest(f"params are nested deeper than {jsonrpc.DEPTH_MAX} levels")


def _again(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """`receive` as it was before the body was read."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
