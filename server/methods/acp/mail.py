"""The one way in which messages are written (acp-canonical §12): `prepare` decides, `deliver`
writes.

Whoever sends, a caller by `acp/send` or the node in a handoff's name, comes through here:

    ready = mail.prepare(ctx, Draft(type="handoff.initiate", to=[agent], payload={…}))
    …own writes…
    envelope = mail.deliver(ctx, ready)

or `mail.post(ctx, draft)` where there is nothing else to write. The sender is the caller of `ctx`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from schemas.acp import (
    PAYLOAD_MAX,
    VERSION,
    ACPContext,
    ACPGivenPolicy,
    ACPMessageEnvelope,
    ACPMessageType,
    ACPPolicy,
    ACPPriority,
    ACPSupportedType,
    check_type,
    check_version,
)
from schemas.acp_payloads import PAYLOADS
from schemas.base import JsonObject, iso, stamp_of
from server.domain.acp import breaker, policy, rates, threads
from server.domain.acp import teams as authority
from server.domain.acp.breaker import CLOSED, CircuitBreaker
from server.domain.acp.rates import Kind
from server.domain.agents import identity
from server.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    TooLarge,
)
from server.domain.invalid import invalid_input
from server.methods.acp import route, thread
from server.methods.acp.delivery import (
    active_members,
    address_of,
    announce,
    audit,
    let_through,
    log_for_team,
    sender_breaker,
)
from server.methods.acp.thread import Joined
from server.methods.base import Context, new_id
from server.store import mailboxes, messages, sender_limits
from server.store.messages import MessageRow

Envelope = dict[str, Any]
DEFAULT_POLICY = ACPGivenPolicy().whole()


class Draft(NamedTuple):
    """A message as its sender means it. `to` holds agent ids, or `*` alone."""

    type: ACPMessageType
    to: Sequence[str]
    payload: JsonObject
    policy: ACPPolicy = DEFAULT_POLICY
    priority: ACPPriority = "normal"
    version: str = VERSION
    team: str | None = None
    thread_id: str | None = None
    reply_to: str | None = None
    topic: str | None = None
    sequence: int | None = None
    expires_at: str | None = None
    context: ACPContext | None = None
    client_id: str | None = None


class Ready(NamedTuple):
    """A message that may be written as it is."""

    message: MessageRow
    payload_bytes: int
    places: Mapping[str, str | None]
    """The recipients' addresses, and the node that each is at home at; None for this one."""
    joined: Joined
    audited: bool
    stamps: tuple[Kind, list[int]] | None = None
    """What the sender's limit is to remember; None when it has none."""
    client_id: tuple[str, str] | None = None
    """The sender's own id for it, and the hash of what it sent."""
    breaker: CircuitBreaker = CLOSED
    """The sender's."""
    duplicate: bool = False
    """It was written before, under the same client id."""


def post(ctx: Context, draft: Draft, *, charged: bool = True) -> Envelope:
    """Write a message for its recipients; its envelope. Raises as `prepare` does."""
    return deliver(ctx, prepare(ctx, draft, charged=charged))


def prepare(ctx: Context, draft: Draft, *, charged: bool = True) -> Ready:
    """Check a draft against schema, policy, thread and limits; writes nothing.

    `charged` is False for what comes with a step that was decided, such as a handoff's: no limit,
    no bound of a thread and no key that was revoked meanwhile may keep that step from being taken.

    Raises InvalidInput (`schema_invalid`, `policy_violation`, `unknown_team`, `type_reserved`,
    `unsupported_version`), TooLarge (`payload_too_large`), NotFound (`unknown_recipient`,
    `no_mailbox`), Forbidden (`broadcast_not_allowed`, `not_in_team`, `not_in_thread`,
    `hop_limit`, `round_limit`, `approval_limit`), Conflict (`client_id_reused`, `sequence_taken`)
    and RateLimited (`rate_limited`, `circuit_open`).
    """
    sender = address_of(ctx)
    found = _breaker(ctx, sender) if charged else CLOSED
    client_id = None
    if draft.client_id is not None:
        client_id = draft.client_id, _fingerprint(draft)
        known = _sent_before(ctx, sender, *client_id)
        if known is not None:
            return Ready(known, 0, {}, thread.of(ctx, known), audited=False, duplicate=True)
    payload = checked_payload(draft.type, draft.version, draft.payload)
    recipients = _recipients(draft)
    broadcast = charged and policy.is_broadcast(recipients)
    _check_policy(ctx, draft, recipients, broadcast, charged)
    if charged and draft.policy.human_gate == "required":
        policy.check_waiting(messages.gated_count(ctx.db, sender), "messages")
    expires_at = _expiry(ctx, draft.expires_at)
    message_id = new_id()
    joined, hop = _place(ctx, draft, sender, message_id, recipients, charged)
    held = _held(ctx, draft, joined)
    places = route.places(ctx, recipients, sender, known_only=charged)
    stamps = _stamps(ctx, sender, "broadcast" if broadcast else "direct") if charged else None
    return Ready(
        message=new_row(
            draft,
            id=message_id,
            # A higher minor version only adds: what is kept is what this node speaks (§3).
            version=VERSION,
            sender=ctx.caller.agent_id,
            recipients=recipients,
            payload=payload,
            thread_id=joined.name,
            expires_at=expires_at,
            created_at=iso(ctx.stamp),
            hop=hop,
            held=held,
        ),
        payload_bytes=len(payload),
        places=places,
        joined=joined,
        audited=policy.is_audited(draft.policy, draft.priority),
        stamps=stamps,
        client_id=client_id,
        breaker=found,
    )


def charge(ctx: Context) -> None:
    """Count what a caller has kept without sending it as a direct message of its own.

    Raises RateLimited (`rate_limited`, `circuit_open`).
    """
    sender = address_of(ctx)
    _breaker(ctx, sender)
    stamps = _stamps(ctx, sender, "direct")
    if stamps is not None:
        sender_limits.put_stamps(ctx.db, sender, *stamps)


def deliver(ctx: Context, ready: Ready) -> Envelope:
    """Write what `prepare` found good, in its transaction; the envelope. Writes nothing for a
    duplicate."""
    message = ready.message
    if ready.duplicate:
        return messages.envelope(message)
    now, sender = message.created_at, address_of(ctx)
    joined = ready.joined
    messages.insert(ctx.db, message, ready.payload_bytes, joined.id)
    thread.spoken(ctx, joined, message)
    # What has no turn and no gate goes straight into the boxes.
    waits = message.held is not None or message.sequence is not None
    for address, node in ready.places.items():
        if waits or node is not None:
            route.hold(ctx, message.id, address, node)
        else:
            mailboxes.put(ctx.db, message.id, address, now)
            announce(ctx, message, address)
        if node is not None and not waits:
            route.let_go(ctx, message.id, address, now)
        if not waits:
            thread.heard(ctx, joined.id, message, address)
    if not waits:
        log_for_team(ctx, message)
    elif message.held is None:
        let_through(ctx, message)
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


# --- the checks of a draft ----------------------------------------------------------------------


def _breaker(ctx: Context, sender: str) -> CircuitBreaker:
    """The sender's circuit breaker. Raises RateLimited while it is open."""
    found = sender_limits.breaker(ctx.db, sender_breaker(sender))
    left = breaker.wait(found, ctx.stamp)
    if left is not None:
        seconds = -(-left // 1_000_000)
        lastly = f", the last as {found.reason}" if found.reason else ""
        raise RateLimited(
            f"You tried too often what you may not do{lastly}; leave that, and try again in "
            f"{seconds} s",
            reason="circuit_open",
            retryAfter=seconds,
            cause=found.reason or None,
        )
    return found


def _sent_before(ctx: Context, sender: str, client_id: str, hash: str) -> MessageRow | None:
    known = messages.sent_as(ctx.db, sender, client_id)
    if known is None:
        return None
    if known[1] != hash:
        raise Conflict(
            "client_id: it stands for another message; choose a new one",
            reason="client_id_reused",
            messageId=known[0],
        )
    found = messages.find(ctx.db, known[0])
    if found is None:
        raise Conflict(
            "client_id: the message that it stands for is in the archive",
            reason="archived",
            messageId=known[0],
        )
    return found


def _fingerprint(draft: Draft) -> str:
    whole = {
        **draft._asdict(),
        "to": list(draft.to),
        "policy": draft.policy.model_dump(),
        "context": draft.context and draft.context.model_dump(),
    }
    return hashlib.sha256(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)).hexdigest()


def checked_payload(type: str, version: str, payload: JsonObject) -> bytes:
    """The payload as it is kept, checked against its type's model (§12.2, §12.3).

    Raises InvalidInput and TooLarge as `prepare` does.
    """
    _checked(check_type, type, "type")
    _checked(check_version, version, "version")
    try:
        text = orjson.dumps(payload)
    except (orjson.JSONEncodeError, TypeError):
        raise InvalidInput("payload: not JSON", reason="schema_invalid", path="payload") from None
    if len(text) > PAYLOAD_MAX:
        raise TooLarge(
            f"payload: {len(text)} bytes as JSON, and {PAYLOAD_MAX} are allowed. Put what is large "
            "where the recipients can read it, and name it in context.artifacts",
            reason="payload_too_large",
            path="payload",
            limit=PAYLOAD_MAX,
            size=len(text),
            instead="context.artifacts",
        )
    model = PAYLOADS[cast(ACPSupportedType, type)]
    try:
        model.model_validate(payload, strict=True)
    except ValidationError as error:
        raise invalid_input(error, within="payload", reason="schema_invalid") from None
    return text


def _checked(check: Callable[[str], None], value: str, path: str) -> None:
    try:
        check(value)
    except PydanticCustomError as error:
        raise InvalidInput(f"{path}: {error.message()}", reason=error.type, path=path) from None


def _recipients(draft: Draft) -> list[str]:
    """The recipients as they were named, each once."""
    return list({identity(agent_id): agent_id for agent_id in draft.to}.values())


def _is_coordinator(ctx: Context) -> bool:
    return ctx.node.acp.is_coordinator(ctx.caller.agent_id)


def _check_policy(
    ctx: Context, draft: Draft, recipients: Sequence[str], broadcast: bool, charged: bool
) -> None:
    policy.check(
        draft.policy,
        priority=draft.priority,
        broadcast=broadcast,
        team=draft.team,
        coordinator=not charged or ctx.caller.human or _is_coordinator(ctx),
    )
    if charged and policy.is_for_team(draft.policy, draft.type):
        check_audience(ctx, str(draft.team), recipients)


def check_audience(ctx: Context, team: str, recipients: Sequence[str]) -> None:
    """Raises as `teams.check_audience` does, for a message of the caller's."""
    members = active_members(ctx, team)
    authority.check_audience(team, members, address_of(ctx), [identity(one) for one in recipients])


def _expiry(ctx: Context, text: str | None) -> str | None:
    if text is None:
        return None
    stamp = stamp_of(text)
    if stamp <= ctx.stamp:
        raise InvalidInput("expires_at: that is over", reason="schema_invalid", path="expires_at")
    return iso(stamp)


def _place(
    ctx: Context,
    draft: Draft,
    sender: str,
    message_id: str,
    recipients: Sequence[str],
    charged: bool,
) -> tuple[Joined, int]:
    """The thread that a message belongs to, and how many replies are before it.

    Raises NotFound for a message to reply to that the sender doesn't know of, Forbidden for a
    thread that it has no part in, and as `threads.check_bounds` does.
    """
    parent = None
    to = policy.named(recipients)
    alone = threads.is_alone(sender, to)
    if draft.reply_to is not None:
        parent = seen(ctx, draft.reply_to)
        joined = thread.of(ctx, parent)
        if draft.thread_id not in (None, joined.name):
            raise InvalidInput(
                f"thread_id: the message that you reply to is in thread {joined.name}",
                reason="schema_invalid",
                path="thread_id",
            )
        if alone or joined.thread.alone is not None:
            joined = thread.joined(ctx, joined.name, message_id, sender, to)
    else:
        name = draft.thread_id or message_id
        joined = thread.joined(ctx, name, message_id, sender, to)
        if charged and joined.closed:
            raise Forbidden(
                "thread_id: you have no part in this thread; leave it out to begin one of your own",
                reason="not_in_thread",
            )
    party = messages.party(ctx.db, joined.id, sender)
    hop = threads.hop_of(party, parent.hop if parent is not None and alone else None)
    if charged:
        threads.check_bounds(party, hop, ctx.node.acp.bounds)
    return joined, hop


def seen(ctx: Context, message_id: str) -> MessageRow:
    """A message that the caller has sent or been sent. Raises NotFound for any other."""
    found = messages.find(ctx.db, message_id)
    caller = address_of(ctx)
    if found is not None and identity(found.from_agent) != caller:
        received = mailboxes.delivery(ctx.db, message_id, caller)
        if received is None or received.box_seq is None:
            found = None
    if found is None:
        raise no_message(message_id)
    return found


def no_message(message_id: str) -> NotFound:
    return NotFound(
        f"You have sent or been sent no message {message_id}", kind="message", messageId=message_id
    )


def _held(ctx: Context, draft: Draft, joined: Joined) -> str | None:
    """What keeps the message back at first: a human's gate, or its turn in its thread."""
    pending = []
    if draft.sequence is not None:
        pending = messages.pending(ctx.db, joined.id, joined.thread.sequence)
    turn = threads.place(draft.type, draft.sequence, joined.thread, pending)
    if draft.policy.human_gate == "required":
        return "gate"
    return "quarantine" if turn == "early" else None


def _stamps(ctx: Context, sender: str, kind: Kind) -> tuple[Kind, list[int]] | None:
    limit = ctx.node.acp.limits.get(kind)
    if limit is None:
        return None
    kept, wait = rates.allow(sender_limits.stamps(ctx.db, sender, kind), ctx.stamp, limit)
    if wait is not None:
        seconds = -(-wait // rates.SECOND)
        raise RateLimited(
            f"{limit.most} {kind} messages in {limit.window // rates.SECOND} s are allowed; "
            f"try again in {seconds} s",
            retryAfter=seconds,
            kind=kind,
            limit=limit.most,
        )
    return kind, kept


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
    """The row of a message that is new here: what was given, and what the node makes of it."""
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
        policy_json=given.policy.model_dump_json(),
        context_json=orjson.dumps(context).decode() if context else None,
        external_refs_json=orjson.dumps(refs).decode() if refs else None,
        sequence=given.sequence,
        expires_at=expires_at,
        created_at=created_at,
        updated_at=None,
        hop=hop,
        held=held,
    )
