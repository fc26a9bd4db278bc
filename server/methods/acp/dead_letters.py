"""acp/deadLetters and acp/replay: undelivered messages, and sending them again (acp-canonical
§10)."""

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
from server.domain.acp import policy
from server.domain.acp.drafts import Draft
from server.domain.agents import identity
from server.domain.errors import Forbidden, IllegalTransition, Refusal
from server.methods.acp import delivery, mail
from server.methods.acp.delivery import address_of
from server.methods.acp.refusals import LOOKING, SENDING
from server.methods.acp.send import posted, sent_before
from server.methods.base import Context, page_of, reads, writes
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
    """List the caller's messages that expired or failed, one entry per recipient, oldest first and
    with those of the archive; and those that are in the inbox but could not be pushed on a channel.
    A human's key also sees the critical, gated and human-audit messages of all senders."""
    rows = mailboxes.dead(
        ctx.db,
        address_of(ctx),
        human=ctx.caller.human,
        after=params.cursor,
        limit=params.limit + 1,
    )
    page, more = page_of(rows, params.limit, lambda row: row[0])
    return {"letters": [letter for _, letter in page], **more}


@writes("acp/replay", ReplayParams, SendResult, guard=SENDING)
def replay(ctx: Context, params: ReplayParams) -> dict[str, Any]:
    """Send one of the caller's dead letters again, as a new message in its thread, to the
    recipients that it did not reach. A repeated call returns the same new message. A message that
    failed only on a push channel is pushed again instead. Nobody sends another's message again: its
    sender would not be who calls (§12.1)."""
    message = messages.find(ctx.db, params.message_id)
    if message is None:
        kept = messages.archived(ctx.db, params.message_id)
    else:
        kept = orjson.loads(mailboxes.whole(ctx.db, message))
    if kept is None or identity(kept["message"]["from"]) != address_of(ctx):
        raise _not_own(ctx, params.message_id, kept)
    dead = [
        receipt["recipient"]
        for receipt in kept["receipts"]
        if receipt["status"] in ("expired", "failed")
    ]
    if dead:
        return posted(ctx, _again(kept["message"], dead, params.expires_at))
    if message is None:
        status = kept["message"]["status"]
        raise IllegalTransition(
            f"Message {params.message_id} is not a dead letter; it is {status}", **{"from": status}
        )
    if pushes.rearm_message(ctx.db, message.id, iso(ctx.now)):
        return sent_before(ctx, message)
    raise delivery.illegal(message, f"Message {message.id} is not a dead letter")


def _not_own(ctx: Context, message_id: str, kept: Any) -> Refusal:
    """The refusal of a message of another's, or of none; one that the caller may see is named."""
    envelope = None if kept is None or not ctx.caller.human else kept["message"]
    if envelope is None or not policy.is_open_to_humans(
        ACPPolicy.model_validate(envelope["policy"]), envelope["priority"]
    ):
        return mail.no_message(message_id)
    return Forbidden(
        f"Only its sender can send message {message_id} again: ask {envelope['from']} to call "
        "acp/replay",
        reason="not_the_sender",
        sender=envelope["from"],
    )


def _again(envelope: dict[str, Any], to: list[str], expires_at: str | None) -> Draft:
    context: dict[str, Any] = envelope.get("context", {})
    refs = context.pop("external_refs", [])
    if len(refs) < REFS_MAX:
        description = "replay of this message"
        refs.append({"type": "other", "value": envelope["id"], "description": description})
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
        # A replay to more recipients later on is a replay of its own.
        client_id=f"replay:{envelope['id']}:{len(to)}",
    )
