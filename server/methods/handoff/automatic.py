"""Steps of handoffs that the node takes by itself (acp-canonical §7.2, §10.4).

Each is one transaction, decides by what it finds there, and may come twice: the second time it
finds nothing to do.
"""

from schemas.base import iso
from server.domain.acp import handoff as domain
from server.domain.acp.handoff import HandoffProblem
from server.methods.acp.delivery import audit
from server.methods.acp.mail import Envelope
from server.methods.base import Context
from server.methods.handoff.notify import tell
from server.methods.handoff.transitions import case_of, record, reject, settle
from server.store import handoffs
from server.store.handoffs import Handoff, Intent


def escalate(ctx: Context, handoff_id: str) -> bool:
    """Tell the coordinator of a handoff that was accepted and is not completed in time; whether
    that was due (§7.2 rule 5)."""
    case = case_of(ctx, handoff_id)
    found = case.handoff
    due = found.status in domain.UNDER_SLA and _is_over(ctx, found)
    if not due or found.escalated_at is not None:
        return False
    hours = ctx.node.handoffs.sla_seconds / 3600
    detail = f"accepted by {found.to_agent} and not completed within {hours:g} h"
    message = tell(
        ctx,
        case.package,
        found.team,
        "status.blocked",
        f"{found.title}: the handoff is overdue. Ask {found.to_agent}, or revoke it",
        to=case.parties.coordinators,
        detail=f"handoff {handoff_id}: {detail}",
        urgent=True,
    )
    handoffs.put_escalated(ctx.db, handoff_id, ctx.stamp)
    record(ctx, found, "escalate", found.status, "node", before=found.status, detail=detail)
    _audit(ctx, "escalated", handoff_id, message, detail)
    return True


def expire(ctx: Context, handoff_id: str) -> bool:
    """End an offer that nobody has accepted in time, and tell both sides; whether that was due.
    The task is free again, or its sender's as before."""
    case = case_of(ctx, handoff_id)
    found = case.handoff
    if found.status not in domain.OFFERED or not _is_over(ctx, found):
        return False
    detail = f"not accepted within {ctx.node.handoffs.offer_seconds / 3600:g} h"
    said = "the offer has expired; its sender may offer the task again"
    message = reject(ctx, case, "expire", said, HandoffProblem("timeout_risk", detail))
    _audit(ctx, "expired", handoff_id, message, detail)
    return True


def _audit(
    ctx: Context, outcome: str, handoff_id: str, message: Envelope | None, detail: str
) -> None:
    about = str(message["id"]) if message is not None else handoff_id
    audit(ctx, outcome, about, handoff_id=handoff_id, detail=detail)


def _is_over(ctx: Context, found: Handoff) -> bool:
    return found.due_at is not None and found.due_at <= ctx.sure


def settle_checked(ctx: Context, handoff_id: str, checks: list[dict[str, str]]) -> None:
    """Take in what came of a handoff's artifacts, and go on from there (§7.2 rule 4)."""
    found = case_of(ctx, handoff_id).handoff
    if found.status != "validating" or found.artifacts is not None:
        return
    handoffs.put_artifacts(ctx.db, handoff_id, checks)
    settle(ctx, case_of(ctx, handoff_id))


def workq_moved(ctx: Context, intent: Intent) -> None:
    """The gateway has taken a call; after the last of them ownership is moved."""
    if not handoffs.intent_done(ctx.db, intent):
        return
    handoffs.put_workq(ctx.db, intent.handoff_id, "transferred")
    _note(ctx, intent, "workq_transferred", f"at {iso(ctx.stamp)}")


def workq_given_up(ctx: Context, intent: Intent, problem: str) -> None:
    """Leave the item's ownership to be moved by hand (§10.4)."""
    handoffs.give_up_intents(ctx.db, intent, problem)
    _note(ctx, intent, "workq_manual", f"{intent.method} {intent.item}: {problem}")


def _note(ctx: Context, intent: Intent, step: str, detail: str) -> None:
    found = case_of(ctx, intent.handoff_id).handoff
    record(ctx, found, step, found.status, "node", before=found.status, detail=detail)
