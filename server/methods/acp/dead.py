"""acp/deadLetters and acp/replay: what did not arrive, and sending it again (acp-canonical §10)."""

from typing import Any, cast

import orjson

from schemas.acp import (
    REFS_MAX,
    ACPContext,
    ACPExternalRef,
    ACPMessageType,
    ACPPolicy,
    ACPPriority,
)
from schemas.acp_calls import (
    DeadLettersParams,
    DeadLettersResult,
    ReplayParams,
    SendResult,
)
from schemas.base import iso
from server.domain.agents import identity
from server.methods.acp import course, mail
from server.methods.acp.course import address_of
from server.methods.acp.guard import LOOKING, SENDING
from server.methods.acp.mail import Draft
from server.methods.acp.send import posted, sent_before
from server.methods.base import Context, check_unscoped, reads, writes
from server.store import mailboxes, messages, pushes
from server.store.messages import Message


@reads(
    "acp/deadLetters",
    DeadLettersParams,
    DeadLettersResult,
    access="write",
    wide=True,
    guard=LOOKING,
)
def dead_letters(ctx: Context, params: DeadLettersParams) -> dict[str, Any]:
    """What the caller sent that expired or failed, for each recipient, oldest first, and what
    could not be pushed on a channel but is in the inbox; for a human's key, also what is critical,
    gated or for human audit of anybody's."""
    check_unscoped(ctx)
    rows = mailboxes.dead(
        ctx.db,
        address_of(ctx),
        human=ctx.caller.human,
        after=params.cursor,
        limit=params.limit + 1,
    )
    result: dict[str, Any] = {
        "letters": [
            {
                "message": messages.envelope(message),
                "receipt": mailboxes.receipt(delivery),
                "channel": channel,
            }
            for _, channel, delivery, message in rows[: params.limit]
        ]
    }
    if len(rows) > params.limit:
        result["nextCursor"] = rows[params.limit - 1][0]
    return result


@writes("acp/replay", ReplayParams, SendResult, guard=SENDING)
def replay(ctx: Context, params: ReplayParams) -> dict[str, Any]:
    """Send a dead letter of one's own again, as a new message in its thread, to those that it did
    not reach. Doing so again answers the same message. One that only could not be pushed on a
    channel is no new message: it is pushed again."""
    check_unscoped(ctx)
    message = messages.find(ctx.db, params.message_id)
    if message is None or identity(message.from_agent) != address_of(ctx):
        raise mail.no_message(params.message_id)
    dead = [
        one.recipient
        for one in mailboxes.deliveries(ctx.db, message.id)
        if one.status in ("expired", "failed")
    ]
    if not dead and pushes.rearm_message(ctx.db, message.id, iso(ctx.now)):
        return sent_before(ctx, message)
    if not dead:
        raise course.illegal(message, f"Message {message.id} is no dead letter")
    return posted(ctx, _again(message, dead, params.expires_at))


def _again(message: Message, to: list[str], expires_at: str | None) -> Draft:
    context: dict[str, Any] = orjson.loads(message.context_json) if message.context_json else {}
    refs: list[Any] = orjson.loads(message.external_refs_json or "[]")
    if len(refs) < REFS_MAX:
        refs.append({"type": "other", "value": message.id, "description": "replay of this message"})
    return Draft(
        type=cast(ACPMessageType, message.type),
        to=to,
        payload=orjson.loads(message.payload_json),
        policy=ACPPolicy.model_validate_json(message.policy_json),
        priority=cast(ACPPriority, message.priority),
        team=message.team,
        thread_id=message.thread_id,
        topic=message.topic,
        expires_at=expires_at,
        context=ACPContext(
            **context, external_refs=[ACPExternalRef.model_validate(ref) for ref in refs]
        ),
        # Should more recipients miss it later, that is another replay.
        client_id=f"replay:{message.id}:{len(to)}",
    )
