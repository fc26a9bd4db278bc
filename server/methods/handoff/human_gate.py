"""acp/approve and acp/approvals: the human gate (acp-canonical §8, §12.8)."""

from typing import Any

import orjson

from schemas.acp_calls import ApprovalsParams, ApprovalsResult, ApproveParams, ApproveResult
from schemas.base import present
from schemas.plain import one_line
from server.domain.acp.handoff import HeldElsewhere
from server.domain.errors import Forbidden
from server.methods.acp import delivery, mail
from server.methods.acp.refusals import LOOKING, SENDING
from server.methods.base import Context, page_of, reads, writes
from server.methods.handoff.actions import decided_by_human
from server.methods.handoff.ownership import decision_held_elsewhere
from server.store import handoffs, mailboxes, messages
from server.store.handoffs import Handoff
from server.store.messages import MessageRow


@writes("acp/approve", ApproveParams, ApproveResult, guard=SENDING)
def approve(ctx: Context, params: ApproveParams) -> dict[str, Any] | HeldElsewhere:
    """Approve a gated message, which then goes to its recipients, or a handoff that requires human
    approval; or refuse it for good. Needs a human's key: `cacp keys create --human`."""
    _check_human(ctx, "approves messages and handoffs")
    message = messages.find(ctx.db, params.message_id)
    if message is None:
        return _decide_on_handoff(ctx, params)
    if message.held != "gate":
        raise delivery.illegal(message, f"Message {message.id} is not awaiting approval")
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


def _decide_on_handoff(ctx: Context, params: ApproveParams) -> dict[str, Any] | HeldElsewhere:
    """The ApproveResult for a handoff. Raises NotFound when there is none that a human decides
    on."""
    approved = params.decision == "approve"
    comment = (params.comment or "").strip() or None
    call = decision_held_elsewhere(ctx, params.message_id, approved=approved, detail=comment)
    if call is not None:
        return call
    handoff = decided_by_human(ctx, params.message_id, approved=approved, detail=comment)
    if handoff is None:
        raise mail.no_message(params.message_id)
    outcome = "approved" if approved else "refused"
    return {"handoff": handoff, "receipts": [], "outcome": outcome}


@reads("acp/approvals", ApprovalsParams, ApprovalsResult, access="write", wide=True, guard=LOOKING)
def approvals(ctx: Context, params: ApprovalsParams) -> dict[str, Any]:
    """List the messages and handoffs that wait for a human's approval at this node, oldest first.
    Needs a human's key."""
    _check_human(ctx, "lists what waits for approval")
    after, most = params.cursor or "", params.limit + 1
    waiting = [_message(message) for message in messages.gated(ctx.db, after, most)]
    waiting += [_handoff(handoff) for handoff in handoffs.unapproved(ctx.db, after, most)]
    waiting.sort(key=lambda entry: str(entry["id"]))
    page, next_cursor = page_of(waiting, params.limit, lambda entry: entry["id"])
    return {"waiting": page, **next_cursor}


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


def _handoff(handoff: Handoff) -> dict[str, Any]:
    return {
        "id": handoff.handoff_id,
        "kind": "handoff",
        "from": handoff.from_agent,
        "to": [handoff.to_agent],
        "type": "handoff.initiate",
        "priority": handoff.package["task"]["priority"],
        "subject": one_line(handoff.title),
        "since": handoff.initiated_at,
    }


def _check_human(ctx: Context, does: str) -> None:
    if not ctx.caller.human:
        raise Forbidden(
            f"Only a human {does}: call with a key that was made by `cacp keys create --human`",
            reason="not_human",
        )
