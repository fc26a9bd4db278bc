"""Writes messages (acp-canonical §12): `prepare` decides, `deliver` writes.

Every message of this node's agents comes through here, from a caller of `acp/send` or from the node
in a handoff's name:

    ready = mail.prepare(ctx, Draft(type="handoff.initiate", to=[agent], payload={…}))
    …own writes…
    envelope = mail.deliver(ctx, ready)

or `mail.post(ctx, draft)` where there is nothing else to write. The sender is the caller of `ctx`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from schemas.acp import VERSION, ACPMessageEnvelope
from schemas.base import iso
from server.domain.acp import breaker, drafts, message_rate, policy, threads
from server.domain.acp import teams as authority
from server.domain.acp.breaker import CLOSED, CircuitBreaker
from server.domain.acp.drafts import Draft
from server.domain.acp.message_rate import Kind
from server.domain.agents import identity
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from server.methods.acp import route, thread
from server.methods.acp.delivery import (
    active_members,
    address_of,
    announce,
    audit,
    coordinates,
    let_through,
    log_for_team,
    sender_breaker,
)
from server.methods.acp.thread import JoinedThread
from server.methods.base import Context, new_id
from server.store import mailboxes, messages, sender_limits
from server.store.messages import MessageRow

Envelope = dict[str, Any]


class PreparedMessage(NamedTuple):
    """A message that `prepare` has accepted."""

    message: MessageRow
    payload_bytes: int
    places: Mapping[str, str | None]
    """Each recipient's address, and the node that is its home; None for this node."""
    joined: JoinedThread
    audited: bool
    stamps: tuple[Kind, list[int]] | None = None
    """The stamps that the sender's rate limit keeps; None when no limit applies."""
    client_id: tuple[str, str] | None = None
    """The sender's own id for the message, and the fingerprint of the draft."""
    breaker: CircuitBreaker = CLOSED
    """The sender's circuit breaker."""
    duplicate: bool = False
    """The message was written before, under the same client id."""


def post(ctx: Context, draft: Draft, *, charged: bool = True) -> Envelope:
    """Write a message and return its envelope. Raises as `prepare` does."""
    return deliver(ctx, prepare(ctx, draft, charged=charged))


def prepare(ctx: Context, draft: Draft, *, charged: bool = True) -> PreparedMessage:
    """Check a draft against schema, policy, thread and limits; writes nothing.

    `charged` is False for a message of a step that is already decided, such as a handoff's: no
    limit, no bound of a thread and no key that has been revoked may prevent that step.

    Raises InvalidInput (`schema_invalid`, `policy_violation`, `unknown_team`, `type_reserved`,
    `unsupported_version`), TooLarge (`payload_too_large`), NotFound (`unknown_recipient`,
    `no_mailbox`), Forbidden (`broadcast_not_allowed`, `not_in_team`, `not_in_thread`,
    `hop_limit`, `round_limit`, `approval_limit`), Conflict (`client_id_reused`, `sequence_taken`)
    and RateLimited (`rate_limited`, `circuit_open`).
    """
    sender = address_of(ctx)
    circuit = _closed_breaker(ctx, sender) if charged else CLOSED
    client_id = None
    if draft.client_id is not None:
        client_id = draft.client_id, drafts.fingerprint(draft)
        known = _sent_before(ctx, sender, *client_id)
        if known is not None:
            return PreparedMessage(
                known, 0, {}, thread.of(ctx, known), audited=False, duplicate=True
            )
    payload = drafts.checked_payload(draft.type, draft.version, draft.payload)
    recipients = drafts.recipients(draft)
    broadcast = charged and policy.is_broadcast(recipients)
    _check_policy(ctx, draft, recipients, broadcast, charged)
    expires_at = drafts.expiry(draft, ctx.stamp)
    message_id = new_id()
    joined, parent = _thread_for(ctx, draft, message_id, recipients, charged)
    hop = _hop(ctx, joined, message_id, parent, charged)
    held = _held(ctx, draft, joined)
    places = route.places(ctx, recipients, sender, known_only=charged)
    stamps = _charged_stamps(ctx, sender, "broadcast" if broadcast else "direct", charged)
    message = new_row(
        draft,
        id=message_id,
        # A higher minor version only adds: the row has the version that this node speaks (§3).
        version=VERSION,
        sender=ctx.caller.agent_id,
        recipients=recipients,
        payload=payload,
        thread_id=joined.name,
        expires_at=expires_at,
        created_at=iso(ctx.stamp),
        hop=hop,
        held=held,
    )
    audited = policy.is_audited(draft.policy, draft.priority)
    return PreparedMessage(
        message, len(payload), places, joined, audited, stamps, client_id, circuit
    )


def charge(ctx: Context) -> None:
    """Count what a caller stores without sending it as one direct message.

    Raises RateLimited (`rate_limited`, `circuit_open`).
    """
    sender = address_of(ctx)
    _closed_breaker(ctx, sender)
    stamps = _charged_stamps(ctx, sender, "direct", True)
    if stamps is not None:
        sender_limits.put_stamps(ctx.db, sender, *stamps)


def deliver(ctx: Context, ready: PreparedMessage) -> Envelope:
    """Write a prepared message in the transaction of `prepare`, and return its envelope. Writes
    nothing for a duplicate."""
    message = ready.message
    if ready.duplicate:
        return messages.envelope(message)
    now, sender = message.created_at, address_of(ctx)
    joined = ready.joined
    messages.insert(ctx.db, message, ready.payload_bytes, joined.id)
    if joined.id == message.id:
        thread.begun(ctx, joined, message)
    else:
        thread.spoken(ctx, joined, message)
    if message.held is not None:
        _hold(ctx, ready)
    elif message.sequence is not None:
        _hold(ctx, ready)
        let_through(ctx, message)
    else:
        _deliver_now(ctx, ready)
    if ready.stamps is not None:
        sender_limits.put_stamps(ctx.db, sender, *ready.stamps)
    if ready.client_id is not None:
        messages.put_client_id(
            ctx.db, sender, ready.client_id[0], message.id, ready.client_id[1], now
        )
    closed = breaker.after_success(ready.breaker, ctx.stamp)
    if closed != ready.breaker:
        sender_limits.put_breaker(ctx.db, sender_breaker(sender), closed)
    if ready.audited:
        audit(ctx, message.held or "accepted", message.id)
    ctx.record("message", message.id, None, message.held or "pending")
    return messages.envelope(message)


def _deliver_now(ctx: Context, ready: PreparedMessage) -> None:
    """Put a message into the boxes here and into the outboxes of its recipients' nodes."""
    message, now = ready.message, ready.message.created_at
    begins = ready.joined.id == message.id
    for address, node in ready.places.items():
        if node is None:
            mailboxes.put(ctx.db, message.id, address, now)
            announce(ctx, message, address)
        else:
            route.hold(ctx, message.id, address, node)
            route.let_go(ctx, message.id, address, now)
        thread.heard(ctx, ready.joined.id, message, address, first=begins)
    log_for_team(ctx, message)


def _hold(ctx: Context, ready: PreparedMessage) -> None:
    """Enter the recipients of a message that waits for a human (`gate`) or for its turn."""
    for address, node in ready.places.items():
        route.hold(ctx, ready.message.id, address, node)


# --- the checks of a draft ----------------------------------------------------------------------


def _closed_breaker(ctx: Context, sender: str) -> CircuitBreaker:
    """The sender's circuit breaker. Raises RateLimited (`circuit_open`) while it is open."""
    circuit = sender_limits.breaker(ctx.db, sender_breaker(sender))
    breaker.check(circuit, ctx.stamp)
    return circuit


def _sent_before(ctx: Context, sender: str, client_id: str, fingerprint: str) -> MessageRow | None:
    """The message that the sender has sent under this client id. Raises Conflict
    (`client_id_reused`, `archived`)."""
    known = messages.sent_as(ctx.db, sender, client_id)
    if known is None:
        return None
    message_id, known_fingerprint = known
    if known_fingerprint != fingerprint:
        raise Conflict(
            "client_id: is used for another message; choose a new one",
            reason="client_id_reused",
            messageId=message_id,
        )
    message = messages.find(ctx.db, message_id)
    if message is None:
        raise Conflict(
            "client_id: the message with this client_id was archived; use a new client_id",
            reason="archived",
            messageId=message_id,
        )
    return message


def _check_policy(
    ctx: Context, draft: Draft, recipients: Sequence[str], broadcast: bool, charged: bool
) -> None:
    """Raises InvalidInput or Forbidden when the policy forbids this message."""
    policy.check(
        draft.policy,
        priority=draft.priority,
        broadcast=broadcast,
        team=draft.team,
        coordinator=not charged or coordinates(ctx),
    )
    if not charged:
        return
    if policy.is_for_team(draft.policy, draft.type):
        check_audience(ctx, str(draft.team), recipients)
    if draft.policy.human_gate == "required":
        policy.check_waiting(messages.gated_count(ctx.db, address_of(ctx)), "messages")


def check_audience(ctx: Context, team: str, recipients: Sequence[str]) -> None:
    """Raises as `teams.check_audience` does, for a message that the caller sends."""
    members = active_members(ctx, team)
    authority.check_audience(
        team, members, address_of(ctx), [identity(agent_id) for agent_id in recipients]
    )


def _thread_for(
    ctx: Context, draft: Draft, message_id: str, recipients: Sequence[str], charged: bool
) -> tuple[JoinedThread, MessageRow | None]:
    """The thread that the message joins or begins, and for a note to oneself the note that it
    replies to.

    Raises NotFound when the sender doesn't know the message that it replies to, InvalidInput when
    that message is in another thread, and Forbidden (`not_in_thread`) when the sender is not a
    party to the thread.
    """
    sender, to = address_of(ctx), policy.named(recipients)
    if draft.reply_to is None:
        joined = thread.joined(ctx, draft.thread_id or message_id, message_id, sender, to)
        if charged and joined.closed:
            raise Forbidden(
                "thread_id: you are not a party to this thread; omit thread_id to begin your own",
                reason="not_in_thread",
            )
        return joined, None
    parent = seen(ctx, draft.reply_to)
    joined = thread.of(ctx, parent)
    if draft.thread_id not in (None, joined.name):
        raise InvalidInput(
            f"thread_id: the message that you reply to is in thread {joined.name}",
            reason="schema_invalid",
            path="thread_id",
        )
    alone = threads.is_alone(sender, to)
    if alone or joined.thread.alone is not None:
        joined = thread.joined(ctx, joined.name, message_id, sender, to)
    return joined, parent if alone else None


def _hop(
    ctx: Context,
    joined: JoinedThread,
    message_id: str,
    parent: MessageRow | None,
    charged: bool,
) -> int:
    """How many replies precede the message in its thread. Raises as `threads.check_bounds` does."""
    party = thread.party_of(ctx, joined, message_id, address_of(ctx))
    hop = threads.hop_of(party, None if parent is None else parent.hop)
    if charged:
        threads.check_bounds(party, hop, ctx.node.acp.bounds)
    return hop


def seen(ctx: Context, message_id: str) -> MessageRow:
    """A message that the caller has sent or received. Raises NotFound for any other."""
    message = messages.find(ctx.db, message_id)
    caller = address_of(ctx)
    if message is not None and identity(message.from_agent) != caller:
        received = mailboxes.delivery(ctx.db, message_id, caller)
        if received is None or received.box_seq is None:
            message = None
    if message is None:
        raise no_message(message_id)
    return message


def no_message(message_id: str) -> NotFound:
    return NotFound(
        f"You have sent or received no message {message_id}", kind="message", messageId=message_id
    )


def _held(ctx: Context, draft: Draft, joined: JoinedThread) -> str | None:
    """Why the message is held at first: "gate" for a human's approval, "quarantine" until its turn
    in the thread. Raises InvalidInput and Conflict as `threads.place` does."""
    pending = []
    if draft.sequence is not None:
        pending = messages.pending(ctx.db, joined.id, joined.thread.sequence)
    turn = threads.place(draft.type, draft.sequence, joined.thread, pending)
    if draft.policy.human_gate == "required":
        return "gate"
    return "quarantine" if turn == "early" else None


def _charged_stamps(
    ctx: Context, sender: str, kind: Kind, charged: bool
) -> tuple[Kind, list[int]] | None:
    """The stamps that the sender's rate limit keeps after this message; None without a limit.
    Raises RateLimited."""
    limit = ctx.node.acp.limits.get(kind)
    if limit is None or not charged:
        return None
    known = sender_limits.stamps(ctx.db, sender, kind)
    return kind, message_rate.charge(known, ctx.stamp, limit, kind)


def new_row(
    given: Draft | ACPMessageEnvelope,
    *,
    id: str,
    version: str,
    sender: str,
    recipients: Sequence[str],
    payload: bytes,
    thread_id: str,
    expires_at: str | None,
    created_at: str,
    hop: int,
    held: str | None = None,
) -> MessageRow:
    """The row of a new message, from what its sender gave and what the node adds."""
    context = given.context.model_dump(exclude_none=True) if given.context else {}
    refs = context.pop("external_refs", None)
    return MessageRow(
        id=id,
        version=version,
        from_agent=sender,
        to_agents_json=orjson.dumps(recipients).decode(),
        team=given.team,
        reply_to=given.reply_to,
        thread_id=thread_id,
        type=given.type,
        topic=given.topic,
        priority=given.priority,
        status="pending",
        payload_json=payload.decode(),
        policy_json=drafts.policy_json(given.policy),
        context_json=orjson.dumps(context).decode() if context else None,
        external_refs_json=orjson.dumps(refs).decode() if refs else None,
        sequence=given.sequence,
        expires_at=expires_at,
        created_at=created_at,
        updated_at=None,
        hop=hop,
        held=held,
    )
