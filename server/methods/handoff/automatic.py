"""Steps of handoffs that the node takes by itself (acp-canonical §7.2, §10.4).

Each is one transaction, decides by what is stored, and is idempotent.
"""

from schemas.base import iso
from server.domain.acp import handoff as domain
from server.domain.acp.handoff import HandoffProblem
from server.methods.acp.delivery import audit
from server.methods.acp.mail import Envelope
from server.methods.base import Context
from server.methods.handoff.notify import tell
from server.methods.handoff.transitions import (
    case_of,
    record,
    reject,
    settle,
    told_when_overdue,
)
from server.store import handoffs
from server.store.handoffs import Handoff, Intent


def escalate(ctx: Context, handoff_id: str) -> bool:
    """Tell the coordinators of an accepted handoff that it is overdue (§7.2 rule 5). False when it
    is not, or they were told before."""
    case = case_of(ctx, handoff_id)
    handoff = case.handoff
    due = handoff.status in domain.UNDER_SLA and _is_over(ctx, handoff)
    if not due or handoff.escalated_at is not None:
        return False
    hours = ctx.node.handoffs.sla_seconds / 3600
    detail = f"accepted by {handoff.to_agent} and not completed within {hours:g} h"
    message = tell(
        ctx,
        case.package,
        handoff.team,
        "status.blocked",
        f"{handoff.title}: the handoff is overdue. Ask {handoff.to_agent}, or a coordinator to "
        "revoke it",
        to=told_when_overdue(ctx, case),
        detail=f"handoff {handoff_id}: {detail}",
        urgent=True,
    )
    handoffs.put_escalated(ctx.db, handoff_id, ctx.stamp)
    record(ctx, handoff, "escalate", handoff.status, "node", before=handoff.status, detail=detail)
    _audit(ctx, "escalated", handoff_id, message, detail)
    return True


def expire(ctx: Context, handoff_id: str) -> bool:
    """End an offer that was not accepted in time, and tell both parties. The task is free again, or
    belongs to the sender as before. False when the offer is not due."""
    case = case_of(ctx, handoff_id)
    handoff = case.handoff
    if handoff.status not in domain.OFFERED or not _is_over(ctx, handoff):
        return False
    detail = f"not accepted within {ctx.node.handoffs.offer_seconds / 3600:g} h"
    text = "the offer has expired; its sender may offer the task again"
    message = reject(ctx, case, "expire", text, HandoffProblem("timeout_risk", detail))
    _audit(ctx, "expired", handoff_id, message, detail)
    return True


def _audit(
    ctx: Context, outcome: str, handoff_id: str, message: Envelope | None, detail: str
) -> None:
    about = str(message["id"]) if message is not None else handoff_id
    audit(ctx, outcome, about, handoff_id=handoff_id, detail=detail)


def _is_over(ctx: Context, handoff: Handoff) -> bool:
    return handoff.due_at is not None and handoff.due_at <= ctx.sure


def settle_checked(ctx: Context, handoff_id: str, checks: list[dict[str, str]]) -> None:
    """Store the results of checking a handoff's artifacts, and settle it (§7.2 rule 4)."""
    handoff = case_of(ctx, handoff_id).handoff
    if handoff.status != "validating" or handoff.artifacts is not None:
        return
    handoffs.put_artifacts(ctx.db, handoff_id, checks)
    settle(ctx, case_of(ctx, handoff_id))


def workq_moved(ctx: Context, intent: Intent) -> None:
    """Record that the gateway took a call; after the last one, the items have moved."""
    if not handoffs.intent_done(ctx.db, intent):
        return
    handoffs.put_workq(ctx.db, intent.handoff_id, "transferred")
    _note(ctx, intent, "workq_transferred", f"at {iso(ctx.stamp)}")


def workq_given_up(ctx: Context, intent: Intent, problem: str) -> None:
    """Record that a person must move the item by hand (§10.4)."""
    handoffs.give_up_intents(ctx.db, intent, problem)
    _note(ctx, intent, "workq_manual", f"{intent.method} {intent.item}: {problem}")


def _note(ctx: Context, intent: Intent, step: str, detail: str) -> None:
    handoff = case_of(ctx, intent.handoff_id).handoff
    record(ctx, handoff, step, handoff.status, "node", before=handoff.status, detail=detail)
