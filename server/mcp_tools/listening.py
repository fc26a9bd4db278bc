"""`subscriptions/listen` (MCP 2026-07-28) over HTTP: a client hears that a resource has changed,
and reads it again.

The SDK serves the stream. This says what has changed for the caller: after a commit, at most once a
second, each resource of a stream is read, and compared with what it was. So a client hears of what
it may read, and of nothing else.
"""

from asyncio import Event
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError

from server.mcp_tools import calls, catalog
from server.mcp_tools.catalog import Call, CallFailed, Json
from server.mcp_tools.server import resource_of
from server.util.wait_first import AnyEvent, first

Context = ServerRequestContext[Any, Any]

PAUSE = 1.0
"""Seconds between two looks."""
CHECK_SECONDS = 15.0
"""How often an idle stream checks whether its caller may still read."""
URIS_MAX = 50
LIST: tuple[str, Json] = ("cacp_project_list", {})
MAIL: tuple[str, Json] = ("cacp_attention", {"kinds": ["mail"]})


class Listening:
    """The handler of `subscriptions/listen`: one call is one stream."""

    def __init__(
        self,
        caller_of: Callable[[Context], tuple[str, Call]],
        next_commit: Callable[[], AnyEvent],
        stopping: Event,
        streams_per_caller: int,
    ) -> None:
        """`caller_of` returns the agent that makes a request, and its calls."""
        self._caller_of = caller_of
        self._next_commit = next_commit
        self._stopping = stopping
        self._most = streams_per_caller
        self._open: Counter[str] = Counter()

    async def __call__(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        events = _events(params.notifications)
        agent_id, call = self._caller_of(ctx)
        if self._open[agent_id] >= self._most:
            raise MCPError(
                types.INTERNAL_ERROR, f"{self._most} streams of yours are open: close one first"
            )
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        self._open[agent_id] += 1
        try:
            # Before the client is told that it listens: what changes from then on is news.
            seen = {event: await _state(event, call) for event in events}
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch, seen, call, bus, handler)
                result = await handler(ctx, params)
                group.cancel_scope.cancel()
            return result
        except CallFailed as failed:
            raise MCPError(types.INTERNAL_ERROR, calls.problem(failed)) from None
        finally:
            self._open[agent_id] -= 1

    async def _watch(
        self,
        seen: dict[ServerEvent, bytes],
        call: Call,
        bus: InMemorySubscriptionBus,
        handler: ListenHandler,
    ) -> None:
        """Publish what changes for the caller, until it may not read it any more, or the node
        stops."""
        while not self._stopping.is_set():
            commit = self._next_commit()
            try:
                for event, before in seen.items():
                    state = await _state(event, call)
                    if state != before:
                        seen[event] = state
                        await bus.publish(event)
            except CallFailed:
                break
            await first(commit, self._stopping, seconds=CHECK_SECONDS)
            await first(self._stopping, seconds=PAUSE)
        handler.close()


def _events(wanted: types.SubscriptionFilter) -> list[ServerEvent]:
    """What a client wants to hear of, as far as it can happen here: the tools never change. Raises
    MCPError for too many resources, or one that doesn't exist."""
    uris = list(dict.fromkeys(wanted.resource_subscriptions or ()))
    if len(uris) > URIS_MAX:
        raise MCPError(types.INVALID_PARAMS, f"at most {URIS_MAX} resources to a stream")
    for uri in uris:
        resource_of(uri)
    lists: list[ServerEvent] = [ResourcesListChanged()] if wanted.resources_list_changed else []
    return [*lists, *map(ResourceUpdated, uris)]


async def _state(event: ServerEvent, call: Call) -> bytes:
    """What the event would tell a change of. Raises CallFailed when the caller may not read
    anything any more."""
    name, given = LIST
    if isinstance(event, ResourceUpdated):
        name, given = resource_of(event.uri)
        # To list the mail would mark it as delivered.
        name, given = MAIL if name == "acp_inbox" else (name, given)
    tool = catalog.TOOLS[name]
    try:
        return orjson.dumps(await call(tool.method(given), tool.params(given)))
    except CallFailed as failed:
        if not isinstance(failed.data, dict) or failed.data.get("reason") != "not_found":
            raise
        return b""
