"""cacp/sync/*: what nodes of our own make hold, compared and fetched (design §6)."""

from typing import Any

import orjson

from peers import digest
from peers.digest import Name
from schemas.mesh import DigestParams, DigestResult, PullParams, PullResult
from server.domain.agents import same_agent
from server.domain.errors import Forbidden
from server.methods.base import Context, check_unscoped, reads, writes
from server.outbox import Outbox
from server.store import digests, peers, untaken

PULL_BYTES = 2 * 1024 * 1024
"""An answer ends once it holds this much; what is left is asked for again."""


@writes("cacp/sync/digest", DigestParams, DigestResult, access="sync")
def compare(ctx: Context, params: DigestParams) -> dict[str, Any]:
    """Digests of what this node holds, by place, for a peer that looks for differences."""
    check_source(ctx, params.source_agent)
    done = digests.catch_up(ctx.db)
    sums: dict[str, str] = {}
    leaves: list[dict[str, str]] = []
    for prefix in params.prefixes:
        if len(prefix) < digest.DEPTH:
            sums |= digests.sums_below(ctx.db, prefix)
        else:
            found = digests.leaves_at(ctx.db, prefix)
            leaves += [
                name._asdict() | {"digest": one}
                for name, one in found.items()
                if name.entity in params.kinds
            ]
    assert ctx.transaction is not None
    clock = ctx.transaction.clock
    # What may yet be stamped anew is not asked for.
    behind = not done or (not clock.sends and untaken.is_any(ctx.db, ctx.node.agent_id))
    told = {"time": clock.own(), "behind": behind}
    return told | {"sums": sums, "leaves": leaves}


@reads("cacp/sync/pull", PullParams, PullResult, wide=True)
def pull(ctx: Context, params: PullParams) -> dict[str, Any]:
    """The sync calls that carry these entities, as many as fit into one answer."""
    check_source(ctx, params.source_agent)
    outbox = Outbox(ctx.db, ctx.node)
    names = [Name(one.entity, one.project_id, one.entity_id) for one in params.entities]
    made = outbox.messages(names, PULL_BYTES)
    messages = [orjson.Fragment(text) for _, text in made if text is not None]
    return {"messages": messages, "rest": len(names) - len(made)}


def check_source(ctx: Context, source_agent: str) -> None:
    """Raises Forbidden unless a node of our own make calls, in its own name (design §7)."""
    check_unscoped(ctx)
    peer = peers.find(ctx.db, ctx.caller.agent_id)
    if peer is None or peer.secret is None or not same_agent(source_agent, peer.agent_id):
        raise Forbidden(
            "Only a peer that has exchanged keys may call this, in its own name",
            reason="unknown_peer",
        )
