"""acp/approve: the human gate (acp-canonical §8, §12.8)."""

from typing import Any

from schemas.acp_calls import ApproveParams, ApproveResult
from server.domain.errors import Forbidden
from server.methods.acp import course, mail
from server.methods.acp.guard import SENDING
from server.methods.base import Context, check_unscoped, writes
from server.methods.handoff import decided_by_human
from server.methods.handoff_held import check_decided_here
from server.store import mailboxes, messages


@writes("acp/approve", ApproveParams, ApproveResult, guard=SENDING)
def approve(ctx: Context, params: ApproveParams) -> dict[str, Any]:
    """Let a gated message through to its recipients, or a handoff that requires it be accepted; or
    refuse it for good. Needs a human's key: `cacp keys create --human`."""
    check_unscoped(ctx)
    if not ctx.caller.human:
        raise Forbidden(
            "Only a human lets gated messages through: call with a key that was made by "
            "`cacp keys create --human`",
            reason="not_human",
        )
    message = messages.find(ctx.db, params.message_id)
    if message is None:
        approved = params.decision == "approve"
        said = (params.comment or "").strip() or None
        check_decided_here(ctx, params.message_id, approved=approved, detail=said)
        handoff = decided_by_human(ctx, params.message_id, approved=approved, detail=said)
        if handoff is not None:
            outcome = "approved" if approved else "refused"
            return {"handoff": handoff, "receipts": [], "outcome": outcome}
        raise mail.no_message(params.message_id)
    if message.held != "gate":
        raise course.illegal(message, f"Message {message.id} waits for no human")
    if params.decision == "approve":
        outcome = "approved"
        course.let_through(ctx, message)
    else:
        outcome = "refused"
        course.give_up(ctx, message, "failed", "refused by a human")
    course.audit(ctx, outcome, message.id, comment=params.comment)
    ctx.record("message", message.id, None, outcome)
    after = messages.find(ctx.db, message.id) or message
    return {
        "message": messages.envelope(after),
        "receipts": [mailboxes.receipt(one) for one in mailboxes.deliveries(ctx.db, message.id)],
        "outcome": outcome,
    }
