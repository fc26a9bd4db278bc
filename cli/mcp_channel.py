"""`cacp mcp --channel`: shows a running Claude Code session what waits for its agent, as it comes.

Claude Code's channel contract (research preview): the server announces the experimental capability
`claude/channel`, and sends `notifications/claude/channel` with a text and attributes, whose names
are identifiers. Claude Code hands the text to the model as `<channel source="cacp" …>`
(https://code.claude.com/docs/en/channels-reference).
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

from cli.client import CallRefused, NodeClient, NodeUnreachable
from cli.terminal import notice
from peers.backoff import delay

CAPABILITY = "claude/channel"
NOTIFICATION = "notifications/claude/channel"
INSTRUCTIONS = (
    ' Events of <channel source="cacp"> show what waits for you: act on it with the tools, by the '
    "next step that each names."
)
WAIT_SECONDS = 30.0
CAP_SECONDS = 15.0
"""Between two attempts to reach the node."""
SIZE = 9_000

ReadStream = MemoryObjectReceiveStream[SessionMessage | Exception]
WriteStream = MemoryObjectSendStream[SessionMessage]
Send = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification: its method and its params."""


async def run_with_channel(
    server: Server[Any], read: ReadStream, write: WriteStream, client: NodeClient
) -> None:
    """Serve the tools, and the channel from the moment that the agent has shaken hands."""
    ready = anyio.Event()

    async def watch(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "notifications/initialized":
            ready.set()
        return result

    async def send(method: str, params: dict[str, Any]) -> None:
        notification = JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        await write.send(SessionMessage(notification))

    async def feed() -> None:
        await ready.wait()
        await ChannelFeed(client, send).run()

    server.middleware.append(watch)
    server.instructions = f"{server.instructions}{INSTRUCTIONS}"
    options = server.create_initialization_options(experimental_capabilities={CAPABILITY: {}})
    async with anyio.create_task_group() as group:
        group.start_soon(feed)
        await server.run(read, write, options)
        group.cancel_scope.cancel()


class ChannelFeed:
    """Asks the node what is new for one session, and sends it on."""

    def __init__(self, client: NodeClient, send: Send) -> None:
        self._client, self._send = client, send
        self._session = f"channel-{uuid4()}"
        self._received = 0
        self._failures = 0

    async def run(self) -> None:
        """Send what is new, without end. While the node is down it tries again, and says so
        once."""
        while True:
            try:
                claim = await to_thread.run_sync(self._claim, abandon_on_cancel=True)
            except (NodeUnreachable, CallRefused) as error:
                await self._failed(str(error))
                continue
            if self._failures:
                notice(f"channel: {self._client.url} answers again")
                self._failures = 0
            if claim["state"] != "available":
                await self._failed("the node doesn't show sessions what waits for them")
            elif claim.get("text"):
                await self._send(NOTIFICATION, {"content": claim["text"], "meta": meta_of(claim)})
                self._received = claim["claim"]

    def _claim(self) -> Any:
        params = {
            "session": self._session,
            "received": self._received,
            "size": SIZE,
            "format": "markdown",
            "wait": WAIT_SECONDS,
        }
        return self._client.call("cacp/attention/claim", params, WAIT_SECONDS)

    async def _failed(self, problem: str) -> None:
        if not self._failures:
            notice(f"channel: {problem}; trying again")
        self._failures += 1
        await anyio.sleep(delay(self._failures, random.random(), cap=CAP_SECONDS))  # noqa: S311


def meta_of(claim: dict[str, Any]) -> dict[str, str]:
    """The attributes of an event: texts, by names that are identifiers."""
    return {
        "items": str(len(claim["items"])),
        "messages": str(len(claim["messages"])),
        "urgent": str(claim["urgent"]),
    }
