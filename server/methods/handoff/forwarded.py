"""acp/sync/handoff: steps of agents of other nodes, for handoffs that this node holds
(acp-canonical §7.2; design §6).

The agent's home node vouches for it. The step has the same checks as if the agent had called here,
and it is never forwarded again. Only the home node knows whether the agent's key is a human's; this
node believes it if its operator has named that node (docs/acp-mesh.md).
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
"""Reasons of refusal that an unbelieved claim to be human may have caused."""


@writes("acp/sync/handoff", HandoffCallParams, HandoffCallResult, access="sync", guard=SENDING)
def forwarded(ctx: Context, params: HandoffCallParams) -> dict[str, Any]:
    """Take a step of a handoff that this node holds, or read it, for an agent whose home is the
    calling peer. A refusal of the step is returned as the answer."""
    check_source(ctx, params.source_agent)
    agent, call = params.agent, params.call
    if not same_agent(home_of(ctx, agent) or "", ctx.caller.agent_id):
        raise Forbidden(
            f"{ctx.caller.agent_id} is not the home node of {agent} and may not call for it",
            reason="not_its_home",
        )
    if call.handoff_id is None:
        raise InvalidInput(
            f"call.action: '{call.action}' must be called on the agent's own node",
            path="call.action",
        )
    believed = identity(ctx.caller.agent_id) in ctx.node.acp.human_nodes
    caller = Caller(agent, "", "verified", "peer", human=params.human and believed)
    acting = replace(ctx, caller=caller, method="acp/handoff")
    changes = ctx.db.total_changes
    try:
        answer = ACTIONS[call.action](acting, call)
    except Refusal as error:
        if isinstance(error, Unavailable) or ctx.db.total_changes != changes:
            # What was written must not be committed: the writer rolls back when this raises.
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
    """The refusal is the same whether the handoff exists or not."""
    own, peer = identity(ctx.node.agent_id), identity(ctx.caller.agent_id)
    return Forbidden(
        f"{own} does not believe {peer} that {identity(agent)} is a human. Approve at {own}, with "
        f"a key of `cacp keys create --human` there; or have its operator add {peer} to "
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
