"""acp/sync/*: mail from other nodes, and what became of ours there (acp-canonical §10, §12.1).

The sender's node vouches for the sender: it signs each message for the node that it goes to, and
must be the peer that brings it and the sender's home. What it checked is checked again here, but
for limits and authority, which are counted where a message is sent.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from schemas.acp_mesh import (
    AgentsParams,
    AgentsResult,
    Carried,
    Letter,
    MailParams,
    MailResult,
    Reached,
    Receipts,
)
from schemas.acp_payloads import HandoffInitiatePayload
from schemas.base import iso, stamp_of
from server.domain.acp import letters, policy, threads
from server.domain.acp.handoff import ENDED
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, Refusal
from server.domain.invalid import invalid_input
from server.methods.acp import delivery, thread
from server.methods.acp.mail import checked_payload, new_row
from server.methods.acp.thread import Joined
from server.methods.base import Context, writes
from server.methods.sync import agent_homes
from server.methods.sync.digest import check_source
from server.store import handoffs, keys, mail_outbox, mailboxes, mesh, messages
from server.store.messages import MessageRow
from server.util.log_once import name_once

REASON_MAX = 500
GONE = "its node has no such agent"


@writes("acp/sync/agents", AgentsParams, AgentsResult, access="sync", large=True)
def agents(ctx: Context, params: AgentsParams) -> dict[str, Any]:
    """Take a peer's signed list of who is at home there, and answer with this node's own."""
    check_source(ctx, params.source_agent)
    source = ctx.caller.agent_id
    agent_homes.take(ctx, source, params.listed)
    own = agent_homes.own_directory(ctx)
    return {} if own is None else {"listed": own.model_dump()}


@writes(
    "acp/sync/mail",
    MailParams,
    MailResult,
    access="sync",
    large=True,
    weight=lambda params: len(params.messages) + len(params.receipts),
)
def mail(ctx: Context, params: MailParams) -> dict[str, Any]:
    """Take messages for agents here from the node of their senders, and receipts from the node of
    their recipients. What came before changes nothing; the answer says how far each message is."""
    check_source(ctx, params.source_agent)
    ctx = replace(ctx, origin=ctx.caller.agent_id)
    refused: list[str] = []
    answers = [_answer(ctx, carried, refused) for carried in params.messages]
    for receipts in params.receipts:
        _apply(ctx, receipts, refused)
    if refused:
        _audit(ctx, refused)
    return {"answers": answers}


# --- messages -----------------------------------------------------------------------------------


def _answer(ctx: Context, carried: Carried, refused: list[str]) -> dict[str, Any]:
    """What became of one message. One that is refused has written nothing."""
    try:
        return {"reached": _take(ctx, _opened(ctx, carried))}
    except Refusal as refusal:
        refused.append(refusal.message[:REASON_MAX])
        return {"error": refused[-1]}


def _opened(ctx: Context, carried: Carried) -> Letter:
    """The letter, if the peer that brings it has signed it for this node and is its sender's home.

    Raises Forbidden or InvalidInput.
    """
    peer, own = ctx.caller.agent_id, ctx.node.agent_id
    if not agent_homes.is_signed(ctx, peer, "mail", own, {"text": carried.text}, carried.signature):
        raise Forbidden(
            f"{peer} has not signed this message for this node", reason="wrong_signature"
        )
    try:
        letter = Letter.model_validate_json(carried.text)
    except ValidationError as error:
        raise invalid_input(error, reason="schema_invalid") from None
    sender = letter.message.from_
    if agent_homes.home_of(ctx, sender) not in (None, identity(peer)):
        raise Forbidden(
            f"{peer} is not the home of {sender}, and does not speak for it",
            reason="not_its_home",
        )
    return letter


def _take(ctx: Context, letter: Letter) -> list[dict[str, Any]]:
    """Put a message into its recipients' boxes; how far it is with each. Raises Refusal."""
    message_id = letter.message.id
    source = identity(ctx.caller.agent_id)
    known = messages.find(ctx.db, message_id)
    if known is not None and (
        mail_outbox.source(ctx.db, message_id) != source
        or not same_agent(known.from_agent, letter.message.from_)
    ):
        raise Conflict("id: it is that of another message here", reason="id_taken")
    wanted = dict.fromkeys(map(identity, letter.recipients))
    kept = messages.archived(ctx.db, message_id) if known is None else None
    if kept is not None:
        return _archived(letter, kept, wanted)
    have = {one.recipient for one in mailboxes.deliveries(ctx.db, message_id)} if known else set()
    new = [one for one in wanted if one not in have and _lives_here(ctx, one)]
    row = known
    if row is None:
        row, joined = _checked(ctx, letter)
        if letters.is_over(letter, ctx.sure, ctx.node.acp.retention):
            return [_end(one, "expired", "its time was over before it came") for one in wanted]
        if new:
            _enter(ctx, row, joined, letter)
    for address in new:
        mailboxes.put(ctx.db, message_id, address, iso(ctx.stamp))
        delivery.announce(ctx, row, address)
        thread.heard(ctx, messages.thread_of(ctx.db, message_id), row, address)
        _note_handoff(ctx, letter, address)
    if known is None and new:
        delivery.take_turn(ctx, row)
    there = [one for one in mailboxes.deliveries(ctx.db, message_id) if one.recipient in wanted]
    found = {one.recipient: mailboxes.reached(one) for one in there}
    return [found.get(one) or _end(one, "failed", GONE) for one in wanted]


def _archived(
    letter: Letter, kept: dict[str, Any], wanted: Collection[str]
) -> list[dict[str, Any]]:
    """How far a message came that is in the archive by now."""
    if not same_agent(kept["message"]["from"], letter.message.from_):
        raise Conflict("id: it is that of another message here", reason="id_taken")
    return [
        {
            "recipient": one["recipient"],
            "status": one["status"],
            "delivered_at": one.get("deliveredAt"),
            "read_at": one.get("readAt"),
            "error": one.get("error"),
        }
        for one in kept["receipts"]
        if one["recipient"] in wanted
    ]


def _checked(ctx: Context, letter: Letter) -> tuple[MessageRow, Joined]:
    """The row of a new message and the thread that it is of, after all that can be refused of it.

    A node sees those messages of a thread that are for its agents: a number may be skipped here,
    but none that is lower is taken after it (§12.5).

    Raises Refusal.
    """
    message = letter.message
    letters.check(letter, ctx.now, ctx.node.future_limit)
    payload = checked_payload(message.type, message.version, message.payload)
    sender = identity(message.from_)
    to = policy.named(message.to)
    # What a peer says that it answers gives it no part in a thread; what was sent to it does.
    joined = thread.joined(ctx, message.thread_id or message.id, message.id, sender, to)
    party = messages.party(ctx.db, joined.id, sender)
    hop = max(letter.hop, threads.hop_of(party))
    threads.check_bounds(party, hop, ctx.node.acp.bounds)
    threads.place(message.type, message.sequence, joined.thread, ())
    row = new_row(
        message,
        id=message.id,
        version=message.version,
        sender=message.from_,
        recipients=message.to,
        payload=payload,
        thread_id=joined.name,
        expires_at=None if message.expires_at is None else iso(stamp_of(message.expires_at)),
        created_at=iso(stamp_of(message.created_at)),
        hop=hop,
    )
    return row, joined


def _enter(ctx: Context, row: MessageRow, joined: Joined, letter: Letter) -> None:
    """Write a message from elsewhere."""
    messages.insert(ctx.db, row, len(row.payload_json.encode()), joined.id)
    mail_outbox.put_source(ctx.db, row.id, ctx.caller.agent_id)
    if agent_homes.home_of(ctx, row.from_agent) is None:
        mesh.put_home(ctx.db, row.from_agent, ctx.caller.agent_id)
    thread.spoken(ctx, joined, row)
    if policy.is_audited(letter.message.policy, letter.message.priority):
        delivery.audit(ctx, "accepted", row.id, sender=row.from_agent)
    ctx.record("message", row.id, None, "pending")


def _note_handoff(ctx: Context, letter: Letter, address: str) -> None:
    """Remember which node holds a handoff, past the message that offers it; and that it has ended,
    when that node says so."""
    node, payload = identity(ctx.caller.agent_id), letter.message.payload
    if letter.message.type == "handoff.initiate":
        offer = HandoffInitiatePayload.model_validate(payload)
        handoffs.put_elsewhere(ctx.db, offer.handoff_id, address, offer.task_id, node)
        return
    about = payload.get("details") or {}
    if about.get("status") in ENDED and isinstance(about.get("handoff_id"), str):
        handoffs.end_elsewhere(ctx.db, about["handoff_id"], node)


def _lives_here(ctx: Context, address: str) -> bool:
    own = identity(ctx.node.agent_id)
    if agent_homes.home_of(ctx, address) not in (None, own):
        return False
    return (
        address == own
        or keys.is_keyed(ctx.db, address)
        or mailboxes.box(ctx.db, address) is not None
    )


def _end(address: str, status: str, error: str) -> dict[str, Any]:
    return {"recipient": address, "status": status, "error": error}


# --- receipts -----------------------------------------------------------------------------------


def _apply(ctx: Context, receipts: Receipts, refused: list[str]) -> None:
    """Bring a message further with those recipients whose home says so."""
    message = messages.find(ctx.db, receipts.message_id)
    if message is None:
        return
    for one in receipts.reached:
        address = identity(one.recipient)
        route = mail_outbox.route(ctx.db, message.id, address)
        if route is None or route.node != identity(ctx.caller.agent_id):
            refused.append(f"A receipt of {address}, whose home is another node")
        elif not route.offered:
            refused.append("A receipt of a message that was not sent to it")
        else:
            _advance(ctx, message, address, one)


def _advance(ctx: Context, message: MessageRow, address: str, said: Reached) -> None:
    steps = {"delivered": said.delivered_at, "read": said.read_at}
    if said.status == "expired":
        steps = {"delivered": said.delivered_at} if said.delivered_at else {}
    elif said.status in ("pending", "failed"):
        steps = {}
    for status, at in steps.items():
        _step(ctx, message.id, address, status, at)
        if status == said.status:
            return
    if said.status != "pending":
        _step(ctx, message.id, address, said.status, None, said.error)


def _step(
    ctx: Context, message_id: str, address: str, to: Any, at: str | None, error: str | None = None
) -> None:
    message = messages.find(ctx.db, message_id)
    box = mailboxes.delivery(ctx.db, message_id, address)
    if message is None or box is None:
        return
    when = None if at is None else iso(min(stamp_of(at), ctx.stamp))
    if delivery.advance(ctx, message, box, to, error and error[:REASON_MAX], at=when) and (
        delivery.is_audited(message) and to in ("read", "expired", "failed")
    ):
        delivery.audit(ctx, to, message.id, recipient=address)


def _audit(ctx: Context, refused: list[str]) -> None:
    """Audit what a peer was refused in one call, and name each reason in the log once."""
    for reason in refused:
        name_once("mail_refused", peer=ctx.caller.agent_id, reason=reason)
    delivery.audit(ctx, "refused", None, refused=len(refused), first=refused[0])
