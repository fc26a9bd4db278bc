"""acp/approve and acp/approvals: the human gate (acp-canonical §8, §12.8)."""

from typing import Any

import orjson

from schemas.acp_calls import ApprovalsParams, ApprovalsResult, ApproveParams, ApproveResult
from schemas.base import present
from schemas.plain import one_line
from server.domain.errors import Forbidden
from server.methods.acp import delivery, mail
from server.methods.acp.refusals import LOOKING, SENDING
from server.methods.base import Context, reads, writes
from server.methods.handoff.actions import decided_by_human
from server.methods.handoff.ownership import check_decided_here
from server.store import handoffs, mailboxes, messages
from server.store.handoffs import Handoff
from server.store.messages import MessageRow


@writes("acp/approve", ApproveParams, ApproveResult, guard=SENDING)
def approve(ctx: Context, params: ApproveParams) -> dict[str, Any]:
    """Let a gated message through to its recipients, or a handoff that requires it be accepted; or
    refuse it for good. Needs a human's key: `cacp keys create --human`."""
    _check_human(ctx, "lets gated messages through")
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
        raise delivery.illegal(message, f"Message {message.id} waits for no human")
    if params.decision == "approve":
        outcome = "approved"
        delivery.let_through(ctx, message)
    else:
        outcome = "refused"
        delivery.give_up(ctx, message, "failed", "refused by a human")
    delivery.audit(ctx, outcome, message.id, comment=params.comment)
    ctx.record("message", message.id, None, outcome)
    after = messages.find(ctx.db, message.id) or message
    return {
        "message": messages.envelope(after),
        "receipts": mailboxes.receipts(ctx.db, message.id),
        "outcome": outcome,
    }


@reads("acp/approvals", ApprovalsParams, ApprovalsResult, access="write", wide=True, guard=LOOKING)
def approvals(ctx: Context, params: ApprovalsParams) -> dict[str, Any]:
    """What waits at this node for a human to approve it: messages and handoffs, oldest first. Needs
    a human's key."""
    _check_human(ctx, "sees what waits for approval")
    after, most = params.cursor or "", params.limit + 1
    waiting = [_message(one) for one in messages.gated(ctx.db, after, most)]
    waiting += [_handoff(one) for one in handoffs.unapproved(ctx.db, after, most)]
    waiting.sort(key=lambda one: str(one["id"]))
    result: dict[str, Any] = {"waiting": waiting[: params.limit]}
    if len(waiting) > params.limit:
        result["nextCursor"] = result["waiting"][-1]["id"]
    return result


def _message(message: MessageRow) -> dict[str, Any]:
    shown = {
        "id": message.id,
        "kind": "message",
        "from": message.from_agent,
        "to": orjson.loads(message.to_agents_json),
        "type": message.type,
        "priority": message.priority,
        "subject": one_line(message.topic or orjson.loads(message.payload_json)["summary"]),
        "since": message.created_at,
        "expiresAt": message.expires_at,
    }
    return present(shown)


def _handoff(found: Handoff) -> dict[str, Any]:
    return {
        "id": found.handoff_id,
        "kind": "handoff",
        "from": found.from_agent,
        "to": [found.to_agent],
        "type": "handoff.initiate",
        "priority": found.package["task"]["priority"],
        "subject": one_line(found.title),
        "since": found.initiated_at,
    }


def _check_human(ctx: Context, does: str) -> None:
    if not ctx.caller.human:
        raise Forbidden(
            f"Only a human {does}: call with a key that was made by `cacp keys create --human`",
            reason="not_human",
        )
