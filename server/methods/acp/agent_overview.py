"""cacp/agent/overview: who is awake, and what waits for whom."""

from functools import partial
from typing import Any

from schemas.agent import AgentOverviewParams, AgentOverviewResult
from schemas.base import iso, present
from server.domain.acp import breaker
from server.domain.acp.routing import CHANNELS, Channel
from server.domain.agent_list import (
    NO_WORK,
    OverviewEntry,
    WaitingWork,
    known_agents,
    matches,
    overview,
)
from server.domain.agents import identity
from server.domain.errors import InvalidInput
from server.methods.acp import push, route
from server.methods.acp.agents import listed_agent
from server.methods.base import Context, page_of, reads
from server.store import agent_states, projects, sender_limits
from server.store.agent_states import ActiveKeys
from server.store.pushes import PushTarget

PUSHED = frozenset({"channel", "wake"})
"""The channels on which the node calls something that may fail."""
PLACES = frozenset("01234")
"""The groups of `OverviewEntry.place`."""


@reads("cacp/agent/overview", AgentOverviewParams, AgentOverviewResult, access="write", wide=True)
def overview_(ctx: Context, params: AgentOverviewParams) -> dict[str, Any]:
    """List the agents in the order in which they need a look: first those that sleep while
    something waits for them, then those that are awake, then the others. The operator, humans and
    the node's own agent see of each what waits for it, its channels and the age of its key; others
    see that of themselves only.
    """
    # A read of the dispatcher has no stamp; whoever calls it has just called.
    now = max((ctx.now, *ctx.node.last_calls.values()))
    may_know = partial(_may_know, ctx)
    work = agent_states.work(ctx.db)
    agents = known_agents(
        route.everyone(ctx),
        projects.held_repos(ctx.db, None),
        ctx.node.last_calls,
        own=None,
        holders_only=False,
    )
    entries = overview(
        (agent for agent in agents if matches(agent, params.query)),
        lambda address: work.get(address, NO_WORK) if may_know(address) else None,
        now,
    )
    after = _place(params.cursor)
    rest = [entry for entry in entries if after is None or entry.place > after]
    page, more = page_of(rest, params.limit, _cursor)
    keys = agent_states.active_keys(ctx.db)
    announced = agent_states.announced(ctx.db)
    return {
        "agents": [
            listed_agent(entry.agent, now)
            | {"isNode": entry.agent.address == identity(ctx.node.agent_id)}
            | (_details(ctx, entry, now, keys, announced) if may_know(entry.agent.address) else {})
            for entry in page
        ],
        "total": len(entries),
        "awake": sum(entry.awake for entry in entries),
        "stalled": sum(entry.is_stalled for entry in entries),
        "elsewhere": sum(entry.agent.node is not None for entry in entries),
        **more,
    }


def _may_know(ctx: Context, address: str) -> bool:
    """Whether the caller may know what waits for an agent, and how it is reached."""
    caller = ctx.caller
    return caller.is_own_agent or caller.human or identity(caller.agent_id) == address


def _details(
    ctx: Context,
    entry: OverviewEntry,
    now: int,
    keys: dict[str, ActiveKeys],
    announced: set[str],
) -> dict[str, Any]:
    address, work = entry.agent.address, entry.work
    key = None if entry.agent.node else keys.get(address)
    details = {
        "isHuman": (key.human or None) if key else None,
        "work": work and _work(work),
        "channels": None if work is None else _channels(ctx, address, announced, now),
        "key": key and _key(key),
    }
    return present(details)


def _work(work: WaitingWork) -> dict[str, Any]:
    since = iso(work.since) if work.since else None
    return present(work._asdict() | {"total": work.total, "since": since})


def _key(key: ActiveKeys) -> dict[str, Any]:
    shown = {
        "createdAt": iso(key.created_at),
        "trust": key.trust,
        "active": key.active,
        "projectCount": key.projects or None,
    }
    return present(shown)


def _channels(ctx: Context, address: str, announced: set[str], now: int) -> list[dict[str, Any]]:
    """The channels that the node serves and that are set up for the agent."""
    states = ctx.node.acp.capabilities
    set_up: dict[Channel, bool] = {
        "inbox": True,
        "session": True,
        "channel": address in announced,
        "wake": address in ctx.node.acp.wakes,
    }
    return [
        _channel(ctx, channel, address, now)
        for channel in CHANNELS
        if set_up[channel] and states[channel] == "available"
    ]


def _channel(ctx: Context, channel: Channel, address: str, now: int) -> dict[str, Any]:
    if channel not in PUSHED:
        return {"channel": channel}
    gate = sender_limits.breaker(ctx.db, push.breaker_name(PushTarget(channel, address)))
    paused = breaker.wait(gate, now) is not None
    return present({"channel": channel, "pausedUntil": iso(gate.open_until) if paused else None})


def _cursor(entry: OverviewEntry) -> str:
    group, work, address = entry.place
    return f"{group}.{-work}.{address}"


def _place(cursor: str | None) -> tuple[int, int, str] | None:
    """The place after which a page begins. Raises InvalidInput."""
    if cursor is None:
        return None
    group, _, rest = cursor.partition(".")
    work, _, address = rest.partition(".")
    if not (group in PLACES and work.isascii() and work.isdigit() and len(work) < 19 and address):
        raise InvalidInput("cursor: must be a nextCursor that this method returned", path="cursor")
    return int(group), -int(work), address
