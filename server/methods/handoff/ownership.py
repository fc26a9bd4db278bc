"""Which node holds a handoff and answers calls about it (acp-canonical §7.2 rule 3).

The node where a handoff was initiated alone keeps its state, so that one index enforces that a task
has one active owner. This node knows from its mail what another one has offered to an agent here.
"""

from typing import Any

from schemas.handoff import HandoffParams
from server.domain.acp.handoff import HeldElsewhere
from server.domain.agents import identity
from server.domain.errors import Conflict
from server.methods.base import Context
from server.store import handoffs

REFUSED = "refused by a human"


def call_held_elsewhere(ctx: Context, params: HandoffParams) -> HeldElsewhere | None:
    """The call to forward when another node holds the handoff: the node that `params` names, or the
    one that has offered the handoff. None when this node answers. Raises Conflict as `held_at`
    does."""
    if params.handoff_id is None:
        return None
    named = None if params.node is None else identity(params.node)
    node = named or held_at(ctx, params.handoff_id)
    if node is None or node == identity(ctx.node.agent_id):
        return None
    call = params.model_dump(mode="json", exclude={"node"}, exclude_unset=True, exclude_none=True)
    return HeldElsewhere(params.handoff_id, node, ctx.caller.agent_id, call, ctx.caller.human)


def decision_held_elsewhere(
    ctx: Context, handoff_id: str, *, approved: bool, detail: str | None
) -> HeldElsewhere | None:
    """The call to forward when a human decides here, by `acp/approve`, on a handoff that another
    node holds. None when this node decides. Raises Conflict as `held_at` does."""
    node = held_at(ctx, handoff_id)
    if node is None:
        return None
    call: dict[str, Any] = {"action": "approve", "handoff_id": handoff_id}
    if not approved:
        call |= {"action": "reject", "code": "other"}
        detail = detail or REFUSED
    if detail is not None:
        call["detail"] = detail
    return HeldElsewhere(
        handoff_id,
        node,
        ctx.caller.agent_id,
        call,
        ctx.caller.human,
        outcome="approved" if approved else "refused",
    )


def held_at(ctx: Context, handoff_id: str) -> str | None:
    """The node that has offered a handoff to the caller, or to anybody here when the caller is a
    human. None when this node holds the handoff, or when no node has offered it.

    Raises Conflict when several nodes have offered it, so that a human's call is ambiguous.
    """
    if handoffs.find(ctx.db, handoff_id) is not None:
        return None
    node = handoffs.elsewhere(ctx.db, handoff_id, identity(ctx.caller.agent_id))
    if node is not None or not ctx.caller.human:
        return node
    nodes = handoffs.nodes_offering(ctx.db, handoff_id)
    if len(nodes) > 1:
        raise Conflict(
            f"Handoff {handoff_id} exists on several nodes ({', '.join(nodes)}). "
            "Call acp/handoff with 'node'",
            reason="held_at_several",
            nodes=nodes,
        )
    return nodes[0] if nodes else None
