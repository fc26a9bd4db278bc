"""acp/sync/*: mail from other nodes, and their receipts for this node's mail (acp-canonical §10,
§12.1).

The sender's node vouches for the sender: it signs each message for the receiving node, and it must
be both the calling peer and the sender's home. This node repeats its checks, except for limits and
authority, which count where a message is sent.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, get_args

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
from schemas.handoff import HandoffStatus
from server.domain.acp import letters, policy, threads
from server.domain.acp.drafts import checked_payload
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, Refusal
from server.domain.invalid import invalid_input
from server.methods.acp import delivery, thread
from server.methods.acp.mail import new_row
from server.methods.acp.thread import JoinedThread
from server.methods.base import Context, writes
from server.methods.sync import agent_homes
from server.methods.sync.digest import check_source
from server.store import handoffs, keys, mail_outbox, mailboxes, mesh, messages
from server.store.messages import MessageRow
from server.util.log_once import name_once

REASON_MAX = 500
GONE = "the recipient's node has no such agent"


@writes("acp/sync/agents", AgentsParams, AgentsResult, access="sync", large=True)
def agents(ctx: Context, params: AgentsParams) -> dict[str, Any]:
    """Take a peer's signed directory of its agents, and answer with this node's."""
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
    """Take messages for agents here from their senders' node, and receipts from their recipients'
    node. Repeated messages change nothing; the answer has the status of each."""
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
    """The outcome of one message. A refused message has written nothing."""
    try:
        return {"reached": _take(ctx, _opened(ctx, carried))}
    except Refusal as refusal:
        refused.append(refusal.message[:REASON_MAX])
        return {"error": refused[-1]}


def _opened(ctx: Context, carried: Carried) -> Letter:
    """The letter, if the calling peer has signed it for this node and is the sender's home.

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
            f"{peer} is not the home node of {sender} and may not send for it",
            reason="not_its_home",
        )
    return letter


def _take(ctx: Context, letter: Letter) -> list[dict[str, Any]]:
    """Put a message into its recipients' boxes; returns its status for each. Raises Refusal."""
    message_id = letter.message.id
    known = messages.find(ctx.db, message_id)
    recipients = dict.fromkeys(map(identity, letter.recipients))
    if known is None:
        archived_message = messages.archived(ctx.db, message_id)
        if archived_message is not None:
            return _archived(letter, archived_message, recipients)
        row, joined = _checked(ctx, letter)
        if letters.is_over(letter, ctx.sure, ctx.node.acp.retention):
            return [
                _end(address, "expired", "it expired before it arrived") for address in recipients
            ]
        new_recipients = [address for address in recipients if _lives_here(ctx, address)]
        if new_recipients:
            _enter(ctx, row, joined, letter)
            _put_in_boxes(ctx, row, letter, new_recipients)
            delivery.take_turn(ctx, row)
    else:
        _check_same(ctx, known, letter)
        delivered_to = {state.recipient for state in mailboxes.deliveries(ctx.db, message_id)}
        _put_in_boxes(
            ctx,
            known,
            letter,
            [
                address
                for address in recipients
                if address not in delivered_to and _lives_here(ctx, address)
            ],
        )
    stored_deliveries = {
        state.recipient: mailboxes.reached(state)
        for state in mailboxes.deliveries(ctx.db, message_id)
    }
    return [
        stored_deliveries.get(address) or _end(address, "failed", GONE) for address in recipients
    ]


def _check_same(ctx: Context, known: MessageRow, letter: Letter) -> None:
    """Raises Conflict (`id_taken`) unless the known message has the letter's source and sender."""
    source = identity(ctx.caller.agent_id)
    if mail_outbox.source(ctx.db, known.id) != source or not same_agent(
        known.from_agent, letter.message.from_
    ):
        raise Conflict("id: is used by another message here", reason="id_taken")


def _put_in_boxes(
    ctx: Context, row: MessageRow, letter: Letter, recipients: Collection[str]
) -> None:
    """Deliver a stored message to recipients on this node."""
    for address in recipients:
        mailboxes.put(ctx.db, row.id, address, iso(ctx.stamp))
        delivery.announce(ctx, row, address)
        thread.heard(ctx, messages.thread_of(ctx.db, row.id), row, address)
        _note_handoff(ctx, letter, address)
    messages.queue_for_search(ctx.db, row.id)


def _archived(
    letter: Letter, archived_message: dict[str, Any], recipients: Collection[str]
) -> list[dict[str, Any]]:
    """The status of an archived message for each recipient."""
    if not same_agent(archived_message["message"]["from"], letter.message.from_):
        raise Conflict("id: is used by another message here", reason="id_taken")
    return [
        {
            "recipient": receipt["recipient"],
            "status": receipt["status"],
            "delivered_at": receipt.get("deliveredAt"),
            "read_at": receipt.get("readAt"),
            "error": receipt.get("error"),
        }
        for receipt in archived_message["receipts"]
        if receipt["recipient"] in recipients
    ]


def _checked(ctx: Context, letter: Letter) -> tuple[MessageRow, JoinedThread]:
    """The row of a new message and its thread, after all checks.

    A node sees only those messages of a thread that are for its agents: numbers may be skipped
    here, but no lower number is accepted afterwards (§12.5).

    Raises Refusal.
    """
    message = letter.message
    letters.check(letter, ctx.now, ctx.node.future_limit)
    payload = checked_payload(message.type, message.version, message.payload)
    sender = identity(message.from_)
    to = policy.named(message.to)
    # A claimed reply makes nobody a party to a thread; a message that was sent to it does.
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


def _enter(ctx: Context, row: MessageRow, joined: JoinedThread, letter: Letter) -> None:
    """Write a message of another node."""
    messages.insert(ctx.db, row, len(row.payload_json.encode()), joined.id)
    mail_outbox.put_source(ctx.db, row.id, ctx.caller.agent_id)
    if agent_homes.home_of(ctx, row.from_agent) is None:
        mesh.put_home(ctx.db, row.from_agent, ctx.caller.agent_id)
    thread.spoken(ctx, joined, row)
    if policy.is_audited(letter.message.policy, letter.message.priority):
        delivery.audit(ctx, "accepted", row.id, sender=row.from_agent)
    ctx.record("message", row.id, None, "pending")


def _note_handoff(ctx: Context, letter: Letter, address: str) -> None:
    """Remember which node holds a handoff that a message offers, and note the status that that node
    reports."""
    node, payload = identity(ctx.caller.agent_id), letter.message.payload
    if letter.message.type == "handoff.initiate":
        offer = HandoffInitiatePayload.model_validate(payload)
        message_id = letter.message.id
        handoffs.put_elsewhere(ctx.db, offer.handoff_id, address, offer.task_id, node, message_id)
        return
    about = payload.get("details") or {}
    if about.get("status") in get_args(HandoffStatus) and isinstance(about.get("handoff_id"), str):
        handoffs.put_status_elsewhere(ctx.db, about["handoff_id"], node, about["status"])


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
    """Apply receipts to a message, for the recipients whose home is the calling peer."""
    message = messages.find(ctx.db, receipts.message_id)
    if message is None:
        return
    for receipt in receipts.reached:
        address = identity(receipt.recipient)
        route = mail_outbox.route(ctx.db, message.id, address)
        if route is None or route.node != identity(ctx.caller.agent_id):
            refused.append(f"A receipt for {address}, whose home is another node")
        elif not route.offered:
            refused.append("A receipt for a message that was not sent to this peer")
        else:
            _advance(ctx, message, address, receipt)


def _advance(ctx: Context, message: MessageRow, address: str, receipt: Reached) -> None:
    steps = {"delivered": receipt.delivered_at, "read": receipt.read_at}
    if receipt.status == "expired":
        steps = {"delivered": receipt.delivered_at} if receipt.delivered_at else {}
    elif receipt.status in ("pending", "failed"):
        steps = {}
    for status, at in steps.items():
        _step(ctx, message.id, address, status, at)
        if status == receipt.status:
            return
    if receipt.status != "pending":
        _step(ctx, message.id, address, receipt.status, None, receipt.error)


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
    """Audit the refusals of one call of a peer, and log each reason once."""
    for reason in refused:
        name_once("mail_refused", peer=ctx.caller.agent_id, reason=reason)
    delivery.audit(ctx, "refused", None, refused=len(refused), first=refused[0])
