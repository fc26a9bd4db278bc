"""acp/deadLetters and acp/replay: what did not arrive, and sending it again (acp-canonical §10)."""

from typing import Any

import orjson

from schemas.acp import (
    REFS_MAX,
    ACPContext,
    ACPExternalRef,
    ACPPolicy,
)
from schemas.acp_calls import (
    DeadLettersParams,
    DeadLettersResult,
    ReplayParams,
    SendResult,
)
from schemas.base import iso
from server.domain.agents import identity
from server.domain.errors import IllegalTransition
from server.methods.acp import delivery, mail
from server.methods.acp.delivery import address_of
from server.methods.acp.mail import Draft
from server.methods.acp.refusals import LOOKING, SENDING
from server.methods.acp.send import posted, sent_before
from server.methods.base import Context, reads, writes
from server.store import mailboxes, messages, pushes


@reads(
    "acp/deadLetters",
    DeadLettersParams,
    DeadLettersResult,
    access="write",
    wide=True,
    guard=LOOKING,
)
def dead_letters(ctx: Context, params: DeadLettersParams) -> dict[str, Any]:
    """What the caller sent that expired or failed, for each recipient, oldest first and from the
    archive too, and what could not be pushed on a channel but is in the inbox; for a human's key,
    also what is critical, gated or for human audit of anybody's."""
    rows = mailboxes.dead(
        ctx.db,
        address_of(ctx),
        human=ctx.caller.human,
        after=params.cursor,
        limit=params.limit + 1,
    )
    result: dict[str, Any] = {"letters": [letter for _, letter in rows[: params.limit]]}
    if len(rows) > params.limit:
        result["nextCursor"] = rows[params.limit - 1][0]
    return result


@writes("acp/replay", ReplayParams, SendResult, guard=SENDING)
def replay(ctx: Context, params: ReplayParams) -> dict[str, Any]:
    """Send a dead letter of one's own again, as a new message in its thread, to those that it did
    not reach. Doing so again answers the same message. One that only could not be pushed on a
    channel is no new message: it is pushed again."""
    message = messages.find(ctx.db, params.message_id)
    if message is None:
        kept = messages.archived(ctx.db, params.message_id)
    else:
        kept = orjson.loads(mailboxes.whole(ctx.db, message))
    if kept is None or identity(kept["message"]["from"]) != address_of(ctx):
        raise mail.no_message(params.message_id)
    dead = [one["recipient"] for one in kept["receipts"] if one["status"] in ("expired", "failed")]
    if dead:
        return posted(ctx, _again(kept["message"], dead, params.expires_at))
    if message is None:
        raise IllegalTransition(f"Message {params.message_id} is no dead letter")
    if pushes.rearm_message(ctx.db, message.id, iso(ctx.now)):
        return sent_before(ctx, message)
    raise delivery.illegal(message, f"Message {message.id} is no dead letter")


def _again(envelope: dict[str, Any], to: list[str], expires_at: str | None) -> Draft:
    context: dict[str, Any] = envelope.get("context", {})
    refs = context.pop("external_refs", [])
    if len(refs) < REFS_MAX:
        said = "replay of this message"
        refs.append({"type": "other", "value": envelope["id"], "description": said})
    return Draft(
        type=envelope["type"],
        to=to,
        payload=envelope["payload"],
        policy=ACPPolicy.model_validate(envelope["policy"]),
        priority=envelope["priority"],
        team=envelope.get("team"),
        thread_id=envelope.get("thread_id"),
        topic=envelope.get("topic"),
        expires_at=expires_at,
        context=ACPContext(
            **context, external_refs=[ACPExternalRef.model_validate(ref) for ref in refs]
        ),
        # Should more recipients miss it later, that is another replay.
        client_id=f"replay:{envelope['id']}:{len(to)}",
    )
