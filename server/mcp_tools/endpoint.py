"""`/mcp`: the tools over streamable HTTP (design §6).

Every request is authenticated as at `POST /`. The endpoint is stateless: without sessions there is
nothing that another caller could take over, and clients don't notice a restart of the node. A GET,
which would open a stream that stays silent, and a DELETE get 405 (MCP 2025-11-25, Transports). The
SDK is imported at the first request, in a thread, and its manager runs as one of the node's loops:
requests are refused while it does not run, and the loop restarts it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from starlette.types import Message, Receive, Scope, Send

from schemas import jsonrpc
from server.domain.errors import InvalidRequest, Refusal, Unavailable
from server.http.admission import Admission
from server.http.body import Disconnected, is_json, read_body
from server.http.responses import refusal_response, respond
from server.mcp_tools.catalog import Call, CallFailed, Json
from server.rpc.dispatch import Dispatcher, RequestContext
from server.util.loops import Loops, Turns, cancel
from server.util.service import Service

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from server.mcp_tools.server import Context

PATH = "/mcp"
REQUEST_CONTEXT = "cacp.request_context"
LOOP = "mcp"
"""The name of the loop in `/health`."""
ANSWER_MAX = 8 * 1024 * 1024
"""Bytes of a method's result that a tool renders, at most: rendering runs on the event loop, and no
model reads as much."""


class McpEndpoint(Service):
    """An ASGI application. Its first request starts the manager."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        admission: Admission,
        body_limit: int,
        streams_per_caller: int,
        loops: Loops,
    ) -> None:
        super().__init__(loops)
        self._dispatcher = dispatcher
        self._admission = admission
        self._body_limit = body_limit
        self._streams_per_caller = streams_per_caller
        self._tried = asyncio.Event()
        """The manager runs, or its first start has failed."""
        self._began = False
        self._manager: StreamableHTTPSessionManager | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers, caller = await self._admission.enter(scope)
            body = await read_body(receive, headers, self._body_limit)
            _check(headers, body)
            manager = await self._served()
        except Disconnected:
            return
        except Refusal as refusal:
            await respond(send, *refusal_response(refusal))
            return
        recheck_access = partial(self._admission.recheck_access, scope, caller)
        # Made here, because a tool's call runs in a task of the SDK and may outlive the request.
        share = self._dispatcher.budget.share(caller.agent_id, ANSWER_MAX)
        scope[REQUEST_CONTEXT] = RequestContext(caller, share=share, recheck_access=recheck_access)
        try:
            await manager.handle_request(scope, _again(body, receive), send)
        finally:
            share.release()

    async def _served(self) -> "StreamableHTTPSessionManager":
        """The manager. Raises Unavailable while it does not run."""
        if not self._began:
            self._began = True
            self.run(LOOP, self._serve)
        if self._manager is None:
            await self._tried.wait()
        if self._manager is None:
            raise Unavailable(
                "The MCP tools are not available at the moment; the node retries automatically",
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
            # Last, so that `/health` names the failure before the waiting requests are refused.
            self._tried.set()

    def _make(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from server.mcp_tools.listening import Listening
        from server.mcp_tools.server import make_server

        dispatcher = self._dispatcher
        listening = Listening(
            self._reader_of,
            lambda: dispatcher.next_commit,
            dispatcher.stopping,
            self._streams_per_caller,
        )
        return StreamableHTTPSessionManager(
            make_server(self._call_of, listening),
            stateless=True,
            max_request_body_size=self._body_limit,
        )

    async def _run(self, started: asyncio.Event) -> None:
        # The manager's task group must be left by the task that entered it.
        manager = await anyio.to_thread.run_sync(self._make)
        async with manager.run():
            self._manager = manager
            started.set()
            await asyncio.Event().wait()

    def _call_of(self, ctx: "Context") -> Call:
        assert ctx.request is not None
        return partial(call, self._dispatcher, ctx.request.scope[REQUEST_CONTEXT])

    def _reader_of(self, ctx: "Context") -> tuple[str, Call]:
        """The agent that makes a request, and its calls as long as the request lasts."""
        assert ctx.request is not None
        context: RequestContext = ctx.request.scope[REQUEST_CONTEXT]
        agent_id = context.caller.agent_id

        async def read(method: str, params: Json) -> Any:
            share = self._dispatcher.budget.share(agent_id, ANSWER_MAX)
            try:
                return await call(self._dispatcher, replace(context, share=share), method, params)
            finally:
                share.release()

        return agent_id, read


async def call(dispatcher: Dispatcher, context: RequestContext, method: str, params: Json) -> Any:
    """One call through the dispatcher that serves `POST /`. Raises CallFailed."""
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
    # json also writes what orjson can't, such as a lone surrogate; the dispatcher refuses that.
    answer = await dispatcher.answer(json.dumps(request).encode(), context)
    assert answer is not None, "a request with an id is answered"
    response = orjson.loads(answer if isinstance(answer, bytes) else b"".join(answer))
    if "error" in response:
        raise CallFailed(response["error"]["message"], response["error"].get("data"))
    return response["result"]


def _check(headers: dict[bytes, bytes], body: bytes) -> None:
    """Raise InvalidRequest unless the body is one JSON-RPC message, nested no deeper than `POST /`
    allows. The SDK would answer with its models' validation errors."""
    if not is_json(headers.get(b"content-type")):
        raise InvalidRequest("Send Content-Type: application/json")
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidRequest("The body is not JSON") from None
    if isinstance(message, dict) and "method" not in message and "id" in message:
        return  # a response, which a stateless server ignores
    try:
        asked = jsonrpc.check(message)
    except (jsonrpc.InvalidRpcRequest, jsonrpc.InvalidParams) as error:
        raise InvalidRequest(
            f"The body should be one JSON-RPC message (MCP has no batches): {error.message}"
        ) from None
    if jsonrpc.is_deep(asked.params):
        raise InvalidRequest(f"params are nested deeper than {jsonrpc.DEPTH_MAX} levels")


def _again(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """A `receive` that returns the body again, then what follows."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
