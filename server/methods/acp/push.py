"""The steps of a push, each in its own transaction: claim, then a worker's push, then settle
(acp-canonical §10, §12.4).

A claim leases pushes on disk before anything leaves the node, so that the push of a killed node is
repeated when its lease ends. No step removes a message from its inbox.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.base import iso, stamp_of
from server.domain.acp import breaker
from server.domain.acp import pushes as domain
from server.methods.acp import delivery
from server.methods.base import Context
from server.store import mailboxes, messages, pushes, sender_limits
from server.store.pushes import DuePush, PushTarget

TOGETHER = 500
"""The most messages that one run of a wake command covers."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One push. `envelope` is that of the first message of `due`; `unread` counts the box."""

    target: PushTarget
    due: tuple[DuePush, ...]
    envelope: dict[str, Any]
    unread: int
    webhook_id: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """The outcome of a push: whether its breaker `opened`, and how many messages are given up."""

    opened: bool = False
    given_up: int = 0


def claim(ctx: Context, target: PushTarget, patience: int) -> Parcel | None:
    """The messages that are due for a webhook or a wake command, leased for `patience`
    (microseconds).

    A webhook gets one message at a time, in the order of their arrival; a command gets all at once.
    None when nothing is due, or while the target's breaker is open.
    """
    now = iso(ctx.now)
    gate = sender_limits.breaker(ctx.db, breaker_name(target))
    if breaker.wait(gate, ctx.now) is not None:
        pushes.put_off(ctx.db, target, now, gate.open_until)
        return None
    webhook = pushes.webhook(ctx.db, target.address) if target.channel == "channel" else None
    gone = target.address not in ctx.node.acp.wakes if target.channel == "wake" else not webhook
    if gone:
        pushes.drop(ctx.db, target)
        return None
    candidates = pushes.due(ctx.db, target, now, 1 if webhook else TOGETHER)
    ready = tuple(candidate for candidate in candidates if not _end_expired(ctx, candidate, target))
    if not ready:
        return None
    begun = []
    for candidate in ready:
        push = domain.started(candidate.push, ctx.now, patience)
        pushes.put(ctx.db, candidate.id, push, now=now)
        begun.append(candidate._replace(push=push))
    return Parcel(
        target=target,
        due=tuple(begun),
        envelope=orjson.loads(orjson.dumps(messages.envelope(ready[0].message))),
        unread=unread(ctx, target.address),
        webhook_id=webhook.webhook_id if webhook else "",
        url=webhook.url if webhook else "",
    )


def settle(ctx: Context, parcel: Parcel, error: str | None, chance: float) -> PushOutcome:
    """Record the outcome of a push. `error` is None, or a text that the sender may read.

    `chance`, between 0 and 1, spreads the next attempts.
    """
    terms, now, given_up = ctx.node.acp.pushes, iso(ctx.now), 0
    name = breaker_name(parcel.target)
    before = sender_limits.breaker(ctx.db, name)
    for due in parcel.due:
        if error is None:
            push = domain.taken(due.push, parcel.target.channel, ctx.now, terms)
        else:
            push = domain.failed(due.push, ctx.now, terms, chance)
            given_up += push.due is None
        pushes.put(ctx.db, due.id, push, now=now, error=error)
        if error is None and parcel.target.channel == "channel":
            _delivered(ctx, due, parcel.target.address)
        if push.status == "failed":
            delivery.audit(
                ctx,
                "push_failed",
                due.message.id,
                recipient=parcel.target.address,
                channel=parcel.target.channel,
                error=error,
            )
    if error is None:
        after = breaker.after_success(before, ctx.now)
    else:
        after = breaker.after_failure(before, ctx.now, terms.trip)
    if after != before:
        sender_limits.put_breaker(ctx.db, name, after)
    return PushOutcome(after.open_until > before.open_until, given_up)


def show(
    ctx: Context,
    address: str,
    *,
    holder: str,
    limit: int,
    urgent: bool = False,
    fitting: Callable[[list[DuePush]], int] = len,
) -> list[DuePush]:
    """The messages to show to an agent's session now, oldest first, leased to it. `fitting` says
    how many of the first to take."""
    target, now = PushTarget("session", address), iso(ctx.now)
    candidates = pushes.due(ctx.db, target, now, limit, urgent=urgent)
    ready = [candidate for candidate in candidates if not _end_expired(ctx, candidate, target)]
    shown = ready[: fitting(ready)]
    for due in shown:
        push = domain.taken(due.push, "session", ctx.now, ctx.node.acp.pushes)
        pushes.put(ctx.db, due.id, push, now=now, holder=holder)
        _delivered(ctx, due, address)
    return shown


def unread(ctx: Context, address: str) -> int:
    """How many messages the agent has not acknowledged."""
    box = mailboxes.box(ctx.db, address)
    return box.counts()["unread"] if box else 0


def breaker_name(target: PushTarget) -> str:
    """The name of the circuit breaker for a recipient's channel."""
    return f"{target.channel}:{target.address}"


def _end_expired(ctx: Context, due: DuePush, target: PushTarget) -> bool:
    """Whether the message has expired; if so, its push is ended."""
    expires_at = due.message.expires_at
    if expires_at is None or stamp_of(expires_at) > ctx.sure:
        return False
    pushes.end(ctx.db, due.message.id, target.address, "expired")
    return True


def _delivered(ctx: Context, due: DuePush, address: str) -> None:
    """Mark the message as delivered in the inbox, so that its sender learns of it."""
    if due.box_status == "pending":
        received = mailboxes.delivery(ctx.db, due.message.id, address)
        message = messages.find(ctx.db, due.message.id)
        if received is not None and message is not None:
            delivery.advance(ctx, message, received, "delivered")
