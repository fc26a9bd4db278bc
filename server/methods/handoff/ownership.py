"""Which node holds a handoff, and is to be asked (acp-canonical §7.2 rule 3).

The node where a handoff was initiated alone keeps its state, so that one index holds that a task
has one active owner. What it has offered to an agent here is known from its mail.
"""

from typing import Any

from schemas.handoff import HandoffParams
from server.domain.agents import identity
from server.domain.errors import Conflict, HeldElsewhere
from server.methods.base import Context
from server.store import handoffs

REFUSED = "refused by a human"


def check_held_here(ctx: Context, params: HandoffParams) -> None:
    """Raises HeldElsewhere for a handoff that another node holds: the one that `params` name, or
    that has offered it. Raises Conflict as `held_at` does."""
    if params.handoff_id is None:
        return
    named = None if params.node is None else identity(params.node)
    node = named or held_at(ctx, params.handoff_id)
    if node not in (None, identity(ctx.node.agent_id)):
        call = params.model_dump(
            mode="json", exclude={"node"}, exclude_unset=True, exclude_none=True
        )
        raise _elsewhere(ctx, params.handoff_id, str(node), call)


def check_decided_here(
    ctx: Context, handoff_id: str, *, approved: bool, detail: str | None
) -> None:
    """Raises HeldElsewhere for a handoff that a human decides on here by `acp/approve`, and another
    node holds. Raises Conflict as `held_at` does."""
    node = held_at(ctx, handoff_id)
    if node is None:
        return
    call: dict[str, Any] = {"action": "approve", "handoff_id": handoff_id}
    if not approved:
        call |= {"action": "reject", "code": "other"}
        detail = detail or REFUSED
    if detail is not None:
        call["detail"] = detail
    found = _elsewhere(ctx, handoff_id, node, call)
    outcome = "approved" if approved else "refused"
    found.result = lambda answer: {
        "handoff": answer.get("handoff"),
        "receipts": [],
        "outcome": outcome,
    }
    raise found


def held_at(ctx: Context, handoff_id: str) -> str | None:
    """The node that has offered a handoff to the caller; to a human, to anybody here. None for one
    that is held here, and for one that is not known.

    Raises Conflict when a human can't tell which is meant.
    """
    if handoffs.find(ctx.db, handoff_id) is not None:
        return None
    node = handoffs.elsewhere(ctx.db, handoff_id, identity(ctx.caller.agent_id))
    if node is not None or not ctx.caller.human:
        return node
    nodes = handoffs.nodes_offering(ctx.db, handoff_id)
    if len(nodes) > 1:
        raise Conflict(
            f"Several nodes have offered a handoff {handoff_id}: {', '.join(nodes)}. "
            "Name the one that you mean: acp/handoff with 'node'",
            reason="held_at_several",
            nodes=nodes,
        )
    return nodes[0] if nodes else None


def _elsewhere(ctx: Context, handoff_id: str, node: str, call: dict[str, Any]) -> HeldElsewhere:
    return HeldElsewhere(
        f"Handoff {handoff_id} is held by {node}",
        node=node,
        agent=ctx.caller.agent_id,
        human=ctx.caller.human,
        call=call,
    )
