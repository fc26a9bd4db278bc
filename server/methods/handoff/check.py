"""acp/handoff/check: what came of a package's evidence at its receiver's (design-next N2)."""

from typing import Any

from schemas.base import iso
from schemas.handoff import HandoffParams
from schemas.handoff_evidence import HandoffCheckParams, HandoffCheckResult
from server.domain.acp.handoff import OFFERED
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, InvalidInput
from server.methods.acp.delivery import audit
from server.methods.acp.refusals import SENDING
from server.methods.base import Context, writes
from server.methods.cacp.handoff_evidence import check_holds
from server.methods.handoff.ownership import held_at
from server.methods.handoff.transitions import HandoffCase, record
from server.methods.handoff.view import visible
from server.store import handoff_checks


@writes("acp/handoff/check", HandoffCheckParams, HandoffCheckResult, guard=SENDING)
def check(ctx: Context, params: HandoffCheckParams) -> dict[str, Any]:
    """Record how the commands of a handoff's package ended at its receiver's, at the receiver's
    node: `cacp handoff check` runs them and calls this. By the receiver, or with a human's key.
    The last check of each agent counts, for the package with this hash."""
    holds = all(run.exit_code == 0 for run in params.commands)
    node = held_at(ctx, params.handoff_id)
    if node is None:
        _note(ctx, params, holds)
    handoff_checks.put(
        ctx.db,
        params.handoff_id,
        params.package_hash,
        checked_by=identity(ctx.caller.agent_id),
        commands=[run.model_dump(mode="json", exclude_none=True) for run in params.commands],
        stamp=ctx.stamp,
    )
    outcome = "holds" if holds else "does not hold"
    audit(ctx, "checked", params.handoff_id, evidence=outcome, packageHash=params.package_hash)
    return {"handoffId": params.handoff_id, "holds": holds, "checkedAt": iso(ctx.stamp)}


def _note(ctx: Context, params: HandoffCheckParams, holds: bool) -> None:
    """Append the check to the history of a handoff that this node holds. Raises NotFound, Forbidden
    for another than the receiver, Conflict for another package and when nobody waits for it, and
    InvalidInput for another number of commands."""
    case = visible(ctx, HandoffParams(action="get", handoff_id=params.handoff_id))
    handoff = case.handoff
    role = "receiver" if _receives(ctx, case) else "human"
    if role == "human" and (
        not ctx.caller.human or same_agent(ctx.caller.agent_id, handoff.from_agent)
    ):
        raise Forbidden(
            "Only its receiver, or a human who is not its sender, may check this handoff",
            reason="wrong_party",
            needs=["receiver", "human"],
        )
    if handoff.status not in OFFERED:
        raise Conflict(
            f"The handoff is {handoff.status}; a check is of one that is not accepted yet",
            reason="not_waiting",
            status=handoff.status,
        )
    if params.package_hash != handoff.package_hash:
        raise Conflict(
            "package_hash: differs from this handoff's package; fetch the handoff with action "
            "'get'",
            reason="hash_mismatch",
            packageHash=handoff.package_hash,
        )
    evidence = case.package["work_state"].get("test_evidence") or {}
    count = len(evidence.get("commands") or ())
    if len(params.commands) != count:
        raise InvalidInput(
            f"commands: has {len(params.commands)}, and the package {count}; expected one for each",
            path="commands",
        )
    detail = "the evidence holds" if holds else "the evidence does not hold"
    record(ctx, handoff, "check", handoff.status, role, before=handoff.status, detail=detail)


def _receives(ctx: Context, case: HandoffCase) -> bool:
    return same_agent(ctx.caller.agent_id, case.handoff.to_agent)


def check_acceptance(ctx: Context, params: HandoffParams) -> None:
    """Raises Conflict when the receiver is to accept a package whose evidence doesn't hold, and
    this node asks for it. Of a handoff that another node holds, `server.mesh.supervisor` asks."""
    if params.action != "accept" or not ctx.node.handoffs.asks_evidence:
        return
    case = visible(ctx, params)
    if case.status == "proposed" and _receives(ctx, case):
        check_holds(ctx.db, case.handoff.handoff_id, case.package)
