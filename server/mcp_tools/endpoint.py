"""`/mcp`: the tools over streamable HTTP, for callers as `POST /` takes them (design §6).

Stateless: there are no sessions, so nothing outlives a request that another caller could take over,
and clients don't notice a node's restart. Who calls is found out for each request, by the same door
as `POST /`. A GET, which would open a stream that never says anything, and a DELETE get 405 (MCP
2025-11-25, Transports). The SDK is imported at the first request, in a thread, and its manager runs
as one of the node's loops: while it doesn't, requests are refused, and it is tried again.
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
from server.domain.errors import InvalidRequest, Refusal, Unavailable
from server.http.rpc_endpoint import (
    Admission,
    Disconnected,
    is_json,
    read_body,
    refusal_response,
    respond,
)
from server.mcp_tools.catalog import Call, CallFailed, Json
from server.rpc.dispatch import Dispatcher, Origin
from server.util.loops import Loops, Turns, cancel

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from server.mcp_tools.server import Context

PATH = "/mcp"
ORIGIN = "cacp.origin"
LOOP = "mcp"
"""What `/health` names when it doesn't run."""
ANSWER_MAX = 8 * 1024 * 1024
"""Bytes of the result that a tool shows: it is read and put into words on the event loop, and no
model reads as much."""


class McpEndpoint:
    """An ASGI application. `stop` ends what it runs in the background."""

    def __init__(
        self, dispatcher: Dispatcher, gate: Admission, body_limit: int, loops: Loops
    ) -> None:
        self._loops = loops
        self._dispatcher = dispatcher
        self._gate = gate
        self._body_limit = body_limit
        self._tried = asyncio.Event()
        """The manager runs, or couldn't be started at the first try."""
        self._running: asyncio.Task[None] | None = None
        self._manager: StreamableHTTPSessionManager | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers, caller = self._gate.enter(scope)
            body = await read_body(receive, headers, self._body_limit)
            _check(headers, body)
            manager = await self._served()
        except Disconnected:
            return
        except Refusal as refusal:
            await respond(send, *refusal_response(refusal))
            return
        check_still = partial(self._gate.check_still, scope, caller)
        # Made here: a tool's call runs in a task of the SDK's, and may outlive the request.
        share = self._dispatcher.budget.share(caller.agent_id, ANSWER_MAX)
        scope[ORIGIN] = Origin(caller, share=share, check_still=check_still)
        try:
            await manager.handle_request(scope, _again(body, receive), send)
        finally:
            share.release()

    async def stop(self) -> None:
        await cancel([self._running])

    async def _served(self) -> "StreamableHTTPSessionManager":
        """The manager, started by the first request. Raises Unavailable while it doesn't run."""
        if self._running is None:
            self._running = self._loops.start(LOOP, self._serve)
        if self._manager is None:
            await self._tried.wait()
        if self._manager is None:
            raise Unavailable(
                "The tools are not served at the moment; the node tries again by itself",
                reason="mcp_unavailable",
            )
        return self._manager

    async def _serve(self) -> Turns:
        started = asyncio.Event()
        running = asyncio.create_task(self._run(started))
        starting = asyncio.create_task(started.wait())
        try:
            await asyncio.wait([running, starting], return_when=asyncio.FIRST_COMPLETED)
            if started.is_set():
                self._tried.set()
                yield None
            await running
        finally:
            self._manager = None
            starting.cancel()
            await cancel([running])
            # Last: who waits is told once the failure is known to the loops.
            self._tried.set()

    def _make(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from server.mcp_tools.server import make_server

        return StreamableHTTPSessionManager(
            make_server(self._call_of), stateless=True, max_request_body_size=self._body_limit
        )

    async def _run(self, started: asyncio.Event) -> None:
        # Its task group must be left by the task that entered it.
        manager = await anyio.to_thread.run_sync(self._make)
        async with manager.run():
            self._manager = manager
            started.set()
            await asyncio.Event().wait()

    def _call_of(self, ctx: "Context") -> Call:
        assert ctx.request is not None
        return partial(call, self._dispatcher, ctx.request.scope[ORIGIN])


async def call(dispatcher: Dispatcher, origin: Origin, method: str, params: Json) -> Any:
    """One call through the door that `POST /` goes through. Raises CallFailed."""
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
    # json writes what arrived as it arrived; what is no JSON is for the dispatcher to refuse.
    answer = await dispatcher.answer(json.dumps(request).encode(), origin)
    assert answer is not None, "a request with an id is answered"
    response = orjson.loads(answer if isinstance(answer, bytes) else b"".join(answer))
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
