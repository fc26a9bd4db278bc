"""What happens to a message once it is written: its turn, its boxes, its status, its audit."""

from typing import Any, cast

from schemas.acp import ACPMessageStatus, ACPPolicy, ACPPriority
from schemas.base import iso
from server.domain.acp import policy, status
from server.domain.acp.threads import Thread
from server.domain.agents import identity
from server.domain.errors import IllegalTransition
from server.methods.acp import route
from server.methods.base import Context
from server.store import mailboxes, messages, pushes, senders, teams
from server.store.mailboxes import Delivery
from server.store.messages import Message
from server.store.pushes import Target


def let_through(ctx: Context, message: Message) -> None:
    """Put a message into its recipients' boxes, unless it is before its turn in its thread; then
    those that waited for it."""
    now = iso(ctx.stamp)
    if message.sequence is not None and message.thread_id is not None:
        thread = messages.thread(ctx.db, message.thread_id) or Thread()
        if message.sequence > thread.sequence + 1:
            messages.put_held(ctx.db, message.id, "quarantine", now)
            return
    if message.held is not None:
        messages.put_held(ctx.db, message.id, None, now)
    for found in mailboxes.deliveries(ctx.db, message.id):
        waits = found.box_seq is None and found.status == "pending"
        if waits and route.let_go(ctx, message.id, found.recipient, now):
            announce(ctx, message, found.recipient)
    log_for_team(ctx, message)
    take_turn(ctx, message)


def log_for_team(ctx: Context, message: Message) -> None:
    """Enter what is delivered now into its teamspace's log, which all members read (§8.2); not what
    is for its recipients alone."""
    if message.team is None or teams.find(ctx.db, message.team) is None:
        return
    if ACPPolicy.model_validate_json(message.policy_json).visibility == "team":
        teams.log_message(ctx.db, message)


def take_turn(ctx: Context, message: Message) -> None:
    """A message with a sequence has had its turn, or will never have it: the next may follow."""
    if message.sequence is None or message.thread_id is None:
        return
    thread = messages.thread(ctx.db, message.thread_id) or Thread()
    if message.sequence != thread.sequence + 1:
        return
    messages.put_thread(ctx.db, message.thread_id, thread._replace(sequence=message.sequence))
    waiting = messages.held_at(ctx.db, message.thread_id, message.sequence + 1)
    if waiting is not None and waiting[1] == "quarantine":
        following = messages.find(ctx.db, waiting[0])
        if following is not None:
            let_through(ctx, following)


def announce(ctx: Context, message: Message, address: str) -> None:
    """Have a message that has come into a box pushed on the channels that its priority takes, as
    far as its recipient has them (§10.2)."""
    rules = ctx.node.acp
    for channel in rules.routes[cast(ACPPriority, message.priority)]:
        if channel == "inbox" or (channel == "wake" and address not in rules.wakes):
            continue
        if channel == "channel" and pushes.webhook(ctx.db, address) is None:
            continue
        pushes.add(ctx.db, message.id, Target(channel, address), iso(ctx.now))


def advance(
    ctx: Context,
    message: Message,
    delivery: Delivery,
    to: ACPMessageStatus,
    error: str | None = None,
    at: str | None = None,
) -> bool:
    """Bring a message further with one recipient, now or `at` the time when its home did; False,
    and nothing done, when it can't go there (§4.1). The envelope's status follows."""
    if not status.path(delivery.status, to):
        return False
    now = iso(ctx.stamp)
    mailboxes.put_delivery(ctx.db, message.id, delivery.recipient, to, at or now, error)
    if to in ("read", "expired", "failed"):
        pushes.end(ctx.db, message.id, delivery.recipient, to)
    if delivery.box_seq is not None and to in ("read", "expired", "failed"):
        mailboxes.count(ctx.db, delivery.recipient, **{to: 1})
    route.report(ctx, message.id)
    whole = status.whole(one.status for one in mailboxes.deliveries(ctx.db, message.id))
    messages.put_status(ctx.db, message.id, whole, now)
    if whole != message.status:
        ctx.record("message", message.id, None, whole)
    return True


def give_up(
    ctx: Context, message: Message, to: ACPMessageStatus, why: str, *, final: bool = False
) -> None:
    """End a message, as expired or failed, for each recipient that has not read it. What was sent
    to another node is that node's to end, unless this is `final`."""
    for found in mailboxes.deliveries(ctx.db, message.id):
        if not final and route.is_out_of_hand(ctx, message.id, found.recipient):
            continue
        current = messages.find(ctx.db, message.id)
        if current is not None:
            advance(ctx, current, found, to, why)
    if message.held is not None:
        messages.put_held(ctx.db, message.id, None, iso(ctx.stamp))
        take_turn(ctx, message)


def audit(ctx: Context, outcome: str, message_id: str | None, **detail: Any) -> None:
    """Append an audit event for what the caller did to a message (§12.8)."""
    senders.audit(
        ctx.db,
        at=iso(ctx.stamp),
        actor=ctx.caller.agent_id,
        action=ctx.method,
        outcome=outcome,
        message_id=message_id,
        detail=detail,
    )


def illegal(message: Message, what: str) -> IllegalTransition:
    """The refusal of a step that a message's status has no place for."""
    now = message.held or message.status
    return IllegalTransition(f"{what}; it is {now}", **{"from": now})


def is_audited(message: Message) -> bool:
    return policy.is_audited(
        ACPPolicy.model_validate_json(message.policy_json), cast(ACPPriority, message.priority)
    )


def address_of(ctx: Context) -> str:
    """The caller's address."""
    return identity(ctx.caller.agent_id)


def sender_breaker(address: str) -> str:
    """The name of a sender's circuit breaker."""
    return f"sender:{address}"
