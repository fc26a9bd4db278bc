"""The steps of a push, each a transaction: it is claimed, made by who can, and settled
(acp-canonical §10, §12.4).

What is claimed is leased on disk before anything leaves the node, so that a push whose node is
killed comes back when its lease ends. Nothing here takes a message out of its inbox.
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
"""Messages that one run of a waking command stands for, at most."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is pushed now. `envelope` is that of the first of `due`, `unread` counts the box."""

    target: PushTarget
    due: tuple[DuePush, ...]
    envelope: dict[str, Any]
    unread: int
    webhook_id: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a push led to. `given_up` counts messages that are not pushed again."""

    opened: bool = False
    given_up: int = 0


def claim(ctx: Context, target: PushTarget, patience: int) -> Parcel | None:
    """What is due to a webhook or a waking command, leased for `patience` (microseconds).

    A webhook is given one message at a time, in the order in which they came; a command all at
    once. None when there is nothing, or while the target's breaker is open.
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
    found = pushes.due(ctx.db, target, now, 1 if webhook else TOGETHER)
    ready = tuple(one for one in found if not _over(ctx, one, target))
    if not ready:
        return None
    begun = []
    for one in ready:
        push = domain.started(one.push, ctx.now, patience)
        pushes.put(ctx.db, one.id, push, now=now)
        begun.append(one._replace(push=push))
    return Parcel(
        target=target,
        due=tuple(begun),
        envelope=orjson.loads(orjson.dumps(messages.envelope(ready[0].message))),
        unread=unread(ctx, target.address),
        webhook_id=webhook.webhook_id if webhook else "",
        url=webhook.url if webhook else "",
    )


def settle(ctx: Context, parcel: Parcel, error: str | None, chance: float) -> Settled:
    """Note what became of a push: None, or what went wrong, in words that its sender may read.

    `chance`, between 0 and 1, spreads the next attempts.
    """
    terms, now, given_up = ctx.node.acp.pushes, iso(ctx.now), 0
    name = breaker_name(parcel.target)
    before = sender_limits.breaker(ctx.db, name)
    for one in parcel.due:
        if error is None:
            push = domain.taken(one.push, parcel.target.channel, ctx.now, terms)
        else:
            push = domain.failed(one.push, ctx.now, terms, chance)
            given_up += push.due is None
        pushes.put(ctx.db, one.id, push, now=now, error=error)
        if error is None and parcel.target.channel == "channel":
            _delivered(ctx, one, parcel.target.address)
        if push.status == "failed":
            delivery.audit(
                ctx,
                "push_failed",
                one.message.id,
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
    return Settled(after.open_until > before.open_until, given_up)


def show(
    ctx: Context,
    address: str,
    *,
    holder: str,
    limit: int,
    urgent: bool = False,
    fitting: Callable[[list[DuePush]], int] = len,
) -> list[DuePush]:
    """What is to be shown to a session of an agent now, oldest first, leased to it: as many of the
    first as are `fitting`."""
    target, now = PushTarget("session", address), iso(ctx.now)
    found = pushes.due(ctx.db, target, now, limit, urgent=urgent)
    ready = [one for one in found if not _over(ctx, one, target)]
    shown = ready[: fitting(ready)]
    for one in shown:
        push = domain.taken(one.push, "session", ctx.now, ctx.node.acp.pushes)
        pushes.put(ctx.db, one.id, push, now=now, holder=holder)
        _delivered(ctx, one, address)
    return shown


def unread(ctx: Context, address: str) -> int:
    """How many messages an agent has not acknowledged."""
    box = mailboxes.box(ctx.db, address)
    return box.counts()["unread"] if box else 0


def breaker_name(target: PushTarget) -> str:
    """The name of the circuit breaker of a channel of a recipient."""
    return f"{target.channel}:{target.address}"


def _over(ctx: Context, one: DuePush, target: PushTarget) -> bool:
    """Whether the message is no more to be pushed; then it isn't."""
    expires_at = one.message.expires_at
    if expires_at is None or stamp_of(expires_at) > ctx.sure:
        return False
    pushes.end(ctx.db, one.message.id, target.address, "expired")
    return True


def _delivered(ctx: Context, one: DuePush, address: str) -> None:
    """The recipient has the message: the inbox, and so its sender, know."""
    if one.box_status == "pending":
        found = mailboxes.delivery(ctx.db, one.message.id, address)
        message = messages.find(ctx.db, one.message.id)
        if found is not None and message is not None:
            delivery.advance(ctx, message, found, "delivered")
