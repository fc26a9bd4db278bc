"""acp/send, acp/respond and acp/status: sending messages (acp-canonical §11)."""

from typing import Any, cast

import orjson

from schemas.acp import CONTEXT_MAX, ACPContext, ACPGivenContext, ACPMessageType, ACPPolicy
from schemas.acp_calls import ACPRespondParams, Common, SendParams, SendResult, StatusParams
from schemas.base import present
from server.domain.acp import policy
from server.domain.acp.drafts import DEFAULT_POLICY, Draft
from server.domain.agents import identity
from server.domain.errors import InvalidInput, Refusal, TooLarge
from server.methods.acp import mail
from server.methods.acp.delivery import address_of
from server.methods.acp.refusals import SENDING
from server.methods.base import Context, writes
from server.store import mailboxes, messages
from server.store.mailboxes import DeliveryState
from server.store.messages import MessageRow


@writes("acp/send", SendParams, SendResult, guard=SENDING)
def send(ctx: Context, params: SendParams) -> dict[str, Any]:
    """Send a message to agents, or to everyone with `*`. It stays in their inboxes until they
    acknowledge it, also while they are offline."""
    _refuse_steps(params.type)
    draft = Draft(
        type=cast(ACPMessageType, params.type),
        to=params.to,
        payload=params.payload,
        team=params.team,
        thread_id=params.thread_id,
        reply_to=params.reply_to,
        **_common(params),
    )
    return posted(ctx, draft)


@writes("acp/respond", ACPRespondParams, SendResult, guard=SENDING)
def respond(ctx: Context, params: ACPRespondParams) -> dict[str, Any]:
    """Answer a message in its thread, with its topic, team and confidentiality. An answer to the
    caller's own message goes to that message's recipients. The payload of a knowledge.response to a
    knowledge.query needs no `query_id`, and that of a system.ack no `message_id`: it is the
    message."""
    _refuse_steps(params.type)
    parent = mail.seen(ctx, params.message_id)
    to = _answered(ctx, parent, to_all=params.to_all)
    draft = Draft(
        type=cast(ACPMessageType, params.type),
        to=to,
        payload=_answering(params, parent),
        team=parent.team,
        reply_to=parent.id,
        **_common(params) | _inherited(ctx, params, parent, to),
    )
    return posted(ctx, draft)


@writes("acp/status", StatusParams, SendResult, guard=SENDING)
def status(ctx: Context, params: StatusParams) -> dict[str, Any]:
    """Report progress to agents: a message of type status.update, status.blocked or
    status.complete."""
    payload = params.model_dump(
        include={"summary", "details", "blocked_on", "needs", "percent_complete", "next_step"},
        exclude_none=True,
    )
    draft = Draft(
        type=cast(ACPMessageType, f"status.{params.state}"),
        to=params.to,
        payload=payload,
        team=params.team,
        thread_id=params.thread_id,
        **_common(params),
    )
    return posted(ctx, draft)


def posted(ctx: Context, draft: Draft) -> dict[str, Any]:
    """Write a message; returns its SendResult. Raises as `mail.prepare` does."""
    ready = mail.prepare(ctx, draft)
    envelope = mail.deliver(ctx, ready)
    if ready.duplicate:
        return sent_before(ctx, ready.message)
    # A new message is pending for every recipient.
    fresh = [DeliveryState(address) for address in ready.places]
    return _sent(ctx, ready.message, envelope, fresh, duplicate=False)


def sent_before(ctx: Context, message: MessageRow) -> dict[str, Any]:
    """The SendResult of a message that was sent before."""
    known = mailboxes.deliveries(ctx.db, message.id)
    return _sent(ctx, message, messages.envelope(message), known, duplicate=True)


def _sent(
    ctx: Context,
    message: MessageRow,
    envelope: mail.Envelope,
    deliveries: list[DeliveryState],
    *,
    duplicate: bool,
) -> dict[str, Any]:
    result = {
        "message": envelope,
        "receipts": [mailboxes.receipt(delivery) for delivery in deliveries],
        "duplicate": duplicate,
        "held": message.held,
        "capabilities": ctx.node.acp.capabilities,
    }
    return present(result)


def _common(params: Common) -> dict[str, Any]:
    return {
        "version": params.version,
        "topic": params.topic,
        "priority": params.priority,
        "sequence": params.sequence,
        "expires_at": params.expires_at,
        "policy": params.policy.whole() if params.policy else DEFAULT_POLICY,
        "context": None if params.context is None else _context(params.context),
        "client_id": params.client_id,
    }


def _refuse_steps(type: str) -> None:
    """Only acp/handoff sends messages about a step, so that none reports a step nobody took."""
    if type.startswith("handoff."):
        raise InvalidInput(
            f"type: acp/handoff sends {type} when the step is taken; call acp/handoff",
            reason="policy_violation",
            path="type",
        )


def _context(given: ACPGivenContext) -> ACPContext:
    """The context to store. Raises TooLarge beyond CONTEXT_MAX bytes (§2.9)."""
    members = given.model_dump(exclude_none=True)
    size = len(orjson.dumps(members))
    if size > CONTEXT_MAX:
        raise TooLarge(
            f"context: {size} bytes as JSON, and {CONTEXT_MAX} are allowed. Put large content into "
            "a file, and name it in context.artifacts",
            reason="context_too_large",
            path="context",
            limit=CONTEXT_MAX,
            size=size,
        )
    return ACPContext(**members)


def _inherited(
    ctx: Context, params: ACPRespondParams, parent: MessageRow, to: list[str]
) -> dict[str, Any]:
    inherited: dict[str, Any] = {"topic": params.topic or parent.topic}
    if params.policy is None:
        given = ACPPolicy.model_validate_json(parent.policy_json)
        inherited["policy"] = given.model_copy(
            update={"human_gate": "none", "visibility": _visibility(ctx, given, parent, to)}
        )
    return inherited


def _answering(params: ACPRespondParams, parent: MessageRow) -> dict[str, Any]:
    """The payload, in which `message_id` need not be repeated."""
    answered = {"knowledge.response": "query_id", "system.ack": "message_id"}.get(params.type)
    if answered is None or (params.type == "knowledge.response" and not _is_question(parent)):
        return params.payload
    return {answered: parent.id, **params.payload}


def _is_question(message: MessageRow) -> bool:
    return message.type == "knowledge.query"


def _visibility(ctx: Context, given: ACPPolicy, parent: MessageRow, to: list[str]) -> str:
    """The visibility of the answered message; private when its teamspace is on another node or no
    longer has both agents as members."""
    if given.visibility == "team":
        try:
            mail.check_audience(ctx, str(parent.team), to)
        except Refusal:
            return "private"
    return given.visibility


def _answered(ctx: Context, parent: MessageRow, *, to_all: bool) -> list[str]:
    """The recipients of an answer."""
    own = address_of(ctx)
    named: list[str] = orjson.loads(parent.to_agents_json)
    if named == [policy.EVERYONE]:
        named = [delivery.recipient for delivery in mailboxes.deliveries(ctx.db, parent.id)]
    others = [
        agent_id
        for agent_id in named
        if identity(agent_id) not in (own, identity(parent.from_agent))
    ]
    if identity(parent.from_agent) == own:
        return others or [parent.from_agent]
    return [parent.from_agent, *others] if to_all else [parent.from_agent]
