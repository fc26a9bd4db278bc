"""acp/sync/handoff: steps by agents of other nodes, for handoffs that this node holds
(acp-canonical §7.2; design §6).

The agent's home vouches for it. The step is the same, with the same checks, as if the agent had
called here; it is never forwarded again. Whose key is a human's is that node's word alone: it
counts where the operator of this node has named that node (docs/acp-mesh.md).
"""

from dataclasses import replace
from typing import Any

from schemas.handoff import HandoffParams
from schemas.handoff_mesh import HandoffCallParams, HandoffCallResult
from server.auth.authenticator import Caller
from server.domain.agents import identity, same_agent
from server.domain.errors import Forbidden, InvalidInput, Refusal, Unavailable
from server.methods.acp.delivery import audit
from server.methods.acp.refusals import SENDING
from server.methods.base import Context, writes
from server.methods.handoff.actions import ACTIONS
from server.methods.sync.agent_homes import home_of
from server.methods.sync.digest import check_source

READS = ("get", "history")
NEEDS_HUMAN = ("human_needed", "not_found")
"""Why one is refused who is no human to this node."""


@writes("acp/sync/handoff", HandoffCallParams, HandoffCallResult, access="sync", guard=SENDING)
def forwarded(ctx: Context, params: HandoffCallParams) -> dict[str, Any]:
    """Take a step of a handoff that this node holds, or read it, for an agent at home at the peer
    that calls. A refusal of the step is an answer."""
    check_source(ctx, params.source_agent)
    agent, call = params.agent, params.call
    if not same_agent(home_of(ctx, agent) or "", ctx.caller.agent_id):
        raise Forbidden(
            f"{ctx.caller.agent_id} is not the home of {agent}, and does not speak for it",
            reason="not_its_home",
        )
    if call.handoff_id is None:
        raise InvalidInput(
            f"call.action: '{call.action}' is for the agent's own node",
            path="call.action",
        )
    believed = identity(ctx.caller.agent_id) in ctx.node.acp.human_nodes
    caller = Caller(agent, "", "verified", "key", human=params.human and believed)
    acting = replace(ctx, caller=caller, method="acp/handoff")
    changes = ctx.db.total_changes
    try:
        answer = ACTIONS[call.action](acting, call)
    except Refusal as error:
        if isinstance(error, Unavailable) or ctx.db.total_changes != changes:
            # What has written may not be committed: the writer rolls back what raises.
            raise
        unheard = params.human and not believed and error.data["reason"] in NEEDS_HUMAN
        refusal = _not_believed(ctx, agent) if unheard else error
        _audit(acting, call, "refused", ctx.caller.agent_id, refusal.data["reason"])
        kind = type(refusal).__name__
        return {"refusal": {"kind": kind, "message": refusal.message, "data": refusal.data}}
    if call.action not in READS:
        _audit(acting, call, "accepted", ctx.caller.agent_id)
    return {"answer": answer}


def _not_believed(ctx: Context, agent: str) -> Forbidden:
    """Says the same whether there is such a handoff or not."""
    own, peer = identity(ctx.node.agent_id), identity(ctx.caller.agent_id)
    return Forbidden(
        f"{own} doesn't take the word of {peer} that {identity(agent)} is a human. Approve at "
        f"{own}, by a key of `cacp keys create --human` there; or its operator names {peer} in "
        "CACP_ACP_HUMAN_NODES",
        reason="human_elsewhere",
        node=own,
    )


def _audit(
    ctx: Context, call: HandoffParams, outcome: str, peer: str, reason: str | None = None
) -> None:
    """Audit the agent's step with the node that vouches for it (§12.8)."""
    detail = {"step": call.action, "vouchedBy": identity(peer)}
    if reason is not None:
        detail["reason"] = reason
    audit(ctx, outcome, call.handoff_id, **detail)
