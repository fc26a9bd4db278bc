"""The delivery of a written message: its turn in the thread, its mailboxes, its status, its audit
events."""

from collections.abc import Collection
from typing import Any, cast

from schemas.acp import ACPMessageStatus, ACPPolicy, ACPPriority
from schemas.base import iso
from server.domain.acp import policy, status, threads
from server.domain.acp import teams as authority
from server.domain.acp.routing import Channel, State
from server.domain.agents import identity
from server.domain.errors import IllegalTransition
from server.methods.acp import route, thread
from server.methods.base import Context
from server.store import mailboxes, messages, pushes, sender_limits, teams
from server.store.mailboxes import DeliveryState
from server.store.messages import MessageRow
from server.store.pushes import PushTarget

LEFT = "the sender or this recipient left the teamspace while the message waited"


def let_through(ctx: Context, message: MessageRow) -> None:
    """Deliver a message, and then the messages that waited for it. A message that is ahead of its
    turn in the thread goes into quarantine instead. When its number was taken while it waited, it
    gets the next free one.
    """
    if message.sequence is not None:
        joined = thread.of(ctx, message)
        at = joined.thread
        pending = messages.pending(ctx.db, joined.id, at.sequence)
        others = [other for other in pending if other.id != message.id]
        message = _numbered(ctx, message, threads.number_for(message.sequence, at, others))
        if threads.place(message.type, message.sequence, at, others) == "early":
            messages.put_held(ctx.db, message.id, "quarantine", iso(ctx.stamp))
            return
    _let_go(ctx, message)
    take_turn(ctx, message)


def _numbered(ctx: Context, message: MessageRow, sequence: int) -> MessageRow:
    if sequence != message.sequence:
        messages.put_sequence(ctx.db, message.id, sequence, iso(ctx.stamp))
    return message._replace(sequence=sequence)


def _let_go(ctx: Context, message: MessageRow) -> None:
    now = iso(ctx.stamp)
    if message.held is not None:
        messages.put_held(ctx.db, message.id, None, now)
    thread_id = messages.thread_of(ctx.db, message.id)
    sender, reached = identity(message.from_agent), False
    meant = ACPPolicy.model_validate_json(message.policy_json)
    for_team = policy.is_for_team(meant, message.type)
    members = active_members(ctx, message.team) if for_team else None
    for delivery in mailboxes.deliveries(ctx.db, message.id):
        waits = delivery.box_seq is None and delivery.status == "pending"
        if not waits:
            continue
        if for_team and not authority.may_reach(members, sender, delivery.recipient):
            advance(ctx, messages.find(ctx.db, message.id) or message, delivery, "failed", LEFT)
            if is_audited(message):
                audit(ctx, "failed", message.id, recipient=delivery.recipient, reason=LEFT)
            continue
        reached = True
        thread.heard(ctx, thread_id, message, delivery.recipient)
        if route.let_go(ctx, message.id, delivery.recipient, now):
            announce(ctx, message, delivery.recipient)
    if reached:
        log_for_team(ctx, message)


def log_for_team(ctx: Context, message: MessageRow) -> None:
    """Append a delivered message to its teamspace's log, which all members read (§8.2). Private
    messages are left out."""
    if message.team is None or teams.find(ctx.db, message.team) is None:
        return
    if ACPPolicy.model_validate_json(message.policy_json).visibility == "team":
        teams.log_message(ctx.db, message)


def active_members(ctx: Context, team: str | None) -> Collection[str] | None:
    """The members of a teamspace; None when there is no active one of that name."""
    teamspace = teams.find(ctx.db, team) if team is not None else None
    active = teamspace is not None and teamspace.status == "active"
    return teams.members(ctx.db, str(team)) if active else None


def take_turn(ctx: Context, message: MessageRow) -> None:
    """Mark the number of a message as taken, and deliver the messages that follow it."""
    if message.sequence is not None:
        _follow(ctx, message, message.sequence)


def _follow(ctx: Context, message: MessageRow, taken: int) -> None:
    """Deliver, one after the other, the messages of the thread whose turn comes once `taken` is
    taken."""
    joined = thread.of(ctx, message)
    at = threads.take(joined.thread, taken, ctx.node.acp.bounds)
    pending = messages.pending(ctx.db, joined.id, at.sequence)
    while (first := threads.turn(at, pending)) is not None:
        pending = [other for other in pending if other.id != first.id]
        at = at._replace(sequence=first.sequence)
        following = messages.find(ctx.db, first.id)
        if following is not None:
            _let_go(ctx, _numbered(ctx, following, first.sequence))
    messages.put_thread(ctx.db, joined.id, joined.name, at)


def announce(ctx: Context, message: MessageRow, address: str) -> None:
    """Queue pushes of a message on the channels of its priority that the recipient has (§10.2)."""
    rules = ctx.node.acp
    for channel in rules.routes[cast(ACPPriority, message.priority)]:
        if channel == "inbox" or (channel == "wake" and address not in rules.wakes):
            continue
        if channel == "channel" and pushes.webhook(ctx.db, address) is None:
            continue
        pushes.add(ctx.db, message.id, PushTarget(channel, address), iso(ctx.now))


def advance(
    ctx: Context,
    message: MessageRow,
    delivery: DeliveryState,
    to: ACPMessageStatus,
    error: str | None = None,
    at: str | None = None,
) -> bool:
    """Change a message's status for one recipient, as of now or of `at`, the time at which the
    recipient's home node did so. The envelope's status follows from it. Returns False, and changes
    nothing, when the new status can't follow the current one (§4.1)."""
    if not status.path(delivery.status, to):
        return False
    now = iso(ctx.stamp)
    mailboxes.put_delivery(ctx.db, message.id, delivery.recipient, to, at or now, error)
    if to in ("read", "expired", "failed"):
        pushes.end(ctx.db, message.id, delivery.recipient, to)
    if delivery.box_seq is not None and to in ("read", "expired", "failed"):
        mailboxes.count(ctx.db, delivery.recipient, **{to: 1})
    route.report(ctx, message.id)
    whole = status.whole(each.status for each in mailboxes.deliveries(ctx.db, message.id))
    messages.put_status(ctx.db, message.id, whole, now)
    if whole != message.status:
        ctx.record("message", message.id, None, whole)
    return True


def give_up(
    ctx: Context, message: MessageRow, to: ACPMessageStatus, why: str, *, final: bool = False
) -> int:
    """End a message, as expired or failed, for each recipient that has not read it; returns how
    many. A message that was sent to another node is ended by that node, except when `final`."""
    ended = 0
    for delivery in mailboxes.deliveries(ctx.db, message.id):
        if not final and route.is_out_of_hand(ctx, message.id, delivery.recipient):
            continue
        current = messages.find(ctx.db, message.id)
        if current is not None:
            ended += advance(ctx, current, delivery, to, why)
    if message.held is not None:
        messages.put_held(ctx.db, message.id, None, iso(ctx.stamp))
        if message.sequence is not None:
            _follow(ctx, message, 0)
    return ended


def audit(ctx: Context, outcome: str, message_id: str | None, **detail: Any) -> None:
    """Append an audit event about the caller's step with a message (§12.8)."""
    sender_limits.audit(
        ctx.db,
        at=iso(ctx.stamp),
        actor=ctx.caller.agent_id,
        action=ctx.method,
        outcome=outcome,
        message_id=message_id,
        detail=detail,
    )


def illegal(message: MessageRow, problem: str) -> IllegalTransition:
    """The refusal of a step that the message's status does not allow."""
    now = message.held or message.status
    return IllegalTransition(f"{problem}; it is {now}", **{"from": now})


def is_audited(message: MessageRow) -> bool:
    return policy.is_audited(
        ACPPolicy.model_validate_json(message.policy_json), cast(ACPPriority, message.priority)
    )


def coordinates(ctx: Context, *, restricted: bool = False) -> bool:
    """Whether the caller has coordinator authority outside teamspaces (`MailRules.coordinates`)."""
    caller = ctx.caller
    return ctx.node.acp.coordinates(
        caller.agent_id,
        operator=caller.operator,
        # Another node's word that it is a human is good for approvals only (docs/acp-mesh.md).
        human=caller.human and caller.via == "key",
        keyless=caller.via == "local",
        restricted=restricted,
    )


def address_of(ctx: Context) -> str:
    """The caller's address."""
    return identity(ctx.caller.agent_id)


def serves_session(ctx: Context) -> bool:
    """Whether this node shows the caller's sessions what waits for it: by default those on the
    node's machine, by its setting also others, or none."""
    rules = ctx.node.acp
    on = rules.capabilities["session"] == "available"
    return on and (rules.remote_sessions or ctx.caller.on_this_machine)


def capabilities_of(ctx: Context) -> dict[Channel, State]:
    """The state of each channel for the caller."""
    states = ctx.node.acp.capabilities
    if states["session"] == "available" and not serves_session(ctx):
        return {**states, "session": "disabled"}
    return states


def sender_breaker(address: str) -> str:
    """The name of a sender's circuit breaker."""
    return f"sender:{address}"
