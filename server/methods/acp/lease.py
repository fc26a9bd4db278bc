"""acp/claim: mail for a running session, each message once (acp-canonical §10, session)."""

from functools import partial
from typing import Any

from schemas.acp_calls import ClaimParams, ClaimResult
from schemas.base import iso, present
from server.domain.session_text import HOW_TO_ACK
from server.domain.untrusted import inline
from server.methods.acp import delivery, push
from server.methods.acp.inbox import markdown
from server.methods.acp.refusals import LOOKING
from server.methods.base import CallSession, Context, waits
from server.store import mail_outbox, mailboxes, messages, pushes
from server.store.mailboxes import Mailbox
from server.store.pushes import DuePush, PushTarget

AND_LATER = f"{HOW_TO_ACK} Others are shown again later."


@waits("acp/claim", ClaimParams, ClaimResult, access="write", guard=LOOKING)
async def claim(session: CallSession, params: ClaimParams) -> dict[str, Any]:
    """Take the mail to show to a session of the caller now: messages on the session channel that no
    session was shown, and messages whose lease ended before they were acknowledged.

    The messages in the answer are leased to this session and marked as delivered. They stay in the
    inbox.
    """
    if await session.read(partial(_is_due, params=params)):
        return await session.write(partial(_claimed, params=params))
    return await session.read(lambda ctx: _result(ctx, params, []))


def _is_due(ctx: Context, params: ClaimParams) -> bool:
    if not delivery.serves_session(ctx):
        return False
    target = PushTarget("session", delivery.address_of(ctx))
    if params.again:
        return pushes.next_due_to(ctx.db, target) is not None
    return bool(pushes.due(ctx.db, target, iso(ctx.now), 1, urgent=params.urgent))


def _claimed(ctx: Context, params: ClaimParams) -> dict[str, Any]:
    address = delivery.address_of(ctx)
    if params.again:
        pushes.release(ctx.db, address, params.session_id, 0, iso(ctx.now))
    shown = push.show(
        ctx,
        address,
        holder=params.session_id,
        limit=params.limit,
        urgent=params.urgent,
        fitting=partial(_fitting, ctx, params),
    )
    return _result(ctx, params, shown)


def _fitting(ctx: Context, params: ClaimParams, ready: list[DuePush]) -> int:
    """How many of the first messages fit into `text`; at least one."""
    if params.format == "json" or not ready:
        return len(ready)
    envelopes = [messages.envelope(due.message) for due in ready]
    if len(_text(ctx, envelopes)) <= params.size:
        return len(ready)
    count = 1
    while len(_text(ctx, envelopes[: count + 1])) <= params.size:
        count += 1
    return count


def _result(ctx: Context, params: ClaimParams, shown: list[DuePush]) -> dict[str, Any]:
    address = delivery.address_of(ctx)
    envelopes = [
        messages.envelope(messages.find(ctx.db, due.message.id) or due.message) for due in shown
    ]
    text = None
    if params.format == "markdown" and shown:
        text = _text(ctx, envelopes)
        if len(text) > params.size:
            text = _named(envelopes[0])
    target = PushTarget("session", address)
    left = pushes.due(ctx.db, target, iso(ctx.now), 1, urgent=params.urgent) if shown else []
    result = {
        "address": address,
        "messages": envelopes,
        "counts": _box(ctx).counts(),
        "more": bool(left),
        "text": text,
        "capabilities": delivery.capabilities_of(ctx),
    }
    return present(result)


def _text(ctx: Context, envelopes: list[dict[str, Any]]) -> str:
    sources = [mail_outbox.source(ctx.db, envelope["id"]) for envelope in envelopes]
    return f"{markdown(ctx, envelopes, sources, _box(ctx))}\n\n{AND_LATER}"


def _named(envelope: dict[str, Any]) -> str:
    """The text in place of a message that is too long for `size`."""
    return (
        f"A message of priority {envelope['priority']} from {inline(envelope['from'])} waits, too "
        f"long to be shown here: read {inline(envelope['id'])} with the tool `acp_query` "
        f"(message_id and bodies) or `cacp inbox`. {AND_LATER}"
    )


def _box(ctx: Context) -> Mailbox:
    return mailboxes.box(ctx.db, delivery.address_of(ctx)) or Mailbox()
