"""acp/inbox and acp/ack: the caller's mail (acp-canonical §11, §12.5).

Reading removes nothing: a message stays listed until its recipient acknowledges it.
"""

import asyncio
import time
from functools import partial
from typing import Any

import orjson

from schemas.acp_calls import AckParams, AckResult, InboxParams, InboxResult
from schemas.base import iso
from server.domain import untrusted
from server.domain.errors import InvalidInput, Unavailable
from server.domain.untrusted import Author
from server.methods.acp import delivery
from server.methods.acp.refusals import LOOKING
from server.methods.base import CallSession, Context, waits, writes
from server.store import changes, mailboxes, messages
from server.store.mailboxes import InboxEntry, Mailbox


class InboxPage:
    """A page of the caller's mailbox."""

    def __init__(self, ctx: Context, params: InboxParams) -> None:
        self.address = delivery.address_of(ctx)
        self.epoch = changes.epoch(ctx.db)
        self.after, self.restarted = _after(params.cursor, self.epoch)
        self.box = mailboxes.box(ctx.db, self.address) or Mailbox()
        if self.after > self.box.high_water:
            # After a power cut, durability NORMAL may have lost the newest messages.
            self.after, self.restarted = 0, True
        # A waiting caller only needs to know whether anything is new, which the box alone tells.
        self.letters: list[InboxEntry] = []
        if self.after < self.box.high_water:
            self.letters = _letters(ctx, params, self.address, self.after)
        self.more = len(self.letters) > params.limit
        self.letters = self.letters[: params.limit]

    @property
    def has_new(self) -> bool:
        """Whether any of the messages has not been shown before."""
        return any(letter.status == "pending" for letter in self.letters)

    def result(self, ctx: Context, params: InboxParams) -> dict[str, Any]:
        """The InboxResult."""
        last = self.letters[-1].seq if self.letters else self.after
        envelopes = [messages.envelope(letter.message) for letter in self.letters]
        result: dict[str, Any] = {
            "address": self.address,
            "messages": envelopes,
            "deliveries": [_delivery(letter) for letter in self.letters],
            "cursor": f"{self.epoch}:{last}",
            "highWater": self.box.high_water,
            "counts": self.box.counts(),
            "more": self.more,
            "restarted": self.restarted,
            "capabilities": ctx.node.acp.capabilities,
        }
        if params.format == "markdown":
            sources = [letter.source for letter in self.letters]
            result["text"] = markdown(ctx, envelopes, sources, self.box)
        return result


def _delivery(letter: InboxEntry) -> dict[str, Any]:
    """The Delivery object."""
    shown = {"messageId": letter.message.id, "seq": letter.seq, "status": letter.status}
    if letter.source is not None:
        shown["vouchedBy"] = letter.source
    return shown


@waits("acp/inbox", InboxParams, InboxResult, access="write", guard=LOOKING)
async def inbox(session: CallSession, params: InboxParams) -> dict[str, Any]:
    """List the caller's mail, oldest first: all that it has not acknowledged, or everything with
    `show: all`; only messages of high or critical priority with `urgent_only`. `wait` is how many
    seconds to wait for mail. `ack` acknowledges messages before the list is made, and `acked` has
    the outcome for each id.

    Listing marks a message as delivered, which its sender sees; the message stays listed.
    """
    acked = []
    if params.ack:
        acked = await session.write(partial(acknowledge, message_ids=params.ack))
    until = time.monotonic() + params.wait
    while True:
        next_commit = session.database.next_commit
        page, listed = await session.read(partial(_looked, params=params))
        left = until - time.monotonic()
        if page.letters or left <= 0 or session.stopping.is_set():
            break
        await _until_more(session, page, next_commit, until)
        await session.recheck_access()
    if page.has_new:
        try:
            shown = await session.write(partial(_shown, params=params))
            return shown | {"acked": acked}
        except Unavailable:
            # The mail can be read though this can't be noted now; the next listing notes it.
            listed = await session.read(lambda ctx: page.result(ctx, params))
    return listed | {"acked": acked}


def _looked(ctx: Context, params: InboxParams) -> tuple[InboxPage, dict[str, Any]]:
    """A page, and its InboxResult if the page can be shown without a write."""
    page = InboxPage(ctx, params)
    return page, {} if page.has_new else page.result(ctx, params)


async def _until_more(
    session: CallSession, page: InboxPage, next_commit: asyncio.Event, until: float
) -> None:
    """Wait until the box has new mail, the time is over, or the node stops.

    Every commit wakes all waiting callers; one look at its box tells each whether it has mail.
    """
    while (left := until - time.monotonic()) > 0 and not session.stopping.is_set():
        await session.until(next_commit, left)
        next_commit = session.database.next_commit
        box = await session.read(lambda ctx: mailboxes.box(ctx.db, page.address) or Mailbox())
        if box != page.box:
            break


@writes("acp/ack", AckParams, AckResult, guard=LOOKING)
def ack(ctx: Context, params: AckParams) -> dict[str, Any]:
    """Acknowledge messages: they become read, which their senders see, and are no longer listed.
    Each id has its own outcome; an `unknown` id does not affect the others. A repeated call changes
    nothing."""
    return {"acked": acknowledge(ctx, params.message_ids)}


def acknowledge(ctx: Context, message_ids: list[str]) -> list[dict[str, str]]:
    """Mark messages as read and as processed (§12.5); returns an Acked object for each."""
    address = delivery.address_of(ctx)
    return [
        {"messageId": message_id, "outcome": _acknowledged(ctx, address, message_id)}
        for message_id in dict.fromkeys(message_ids)
    ]


def _acknowledged(ctx: Context, address: str, message_id: str) -> str:
    if mailboxes.is_processed(ctx.db, address, message_id):
        return "already"
    received = mailboxes.delivery(ctx.db, message_id, address)
    message = messages.find(ctx.db, message_id)
    if received is None or message is None or received.box_seq is None:
        return "unknown"
    if received.status in ("expired", "failed"):
        return received.status
    delivery.advance(ctx, message, received, "read")
    mailboxes.put_processed(ctx.db, address, message.id, iso(ctx.stamp))
    if delivery.is_audited(message):
        delivery.audit(ctx, "read", message.id)
    return "read"


def _shown(ctx: Context, params: InboxParams) -> dict[str, Any]:
    """Mark the listed messages as delivered; returns the InboxResult."""
    for letter in InboxPage(ctx, params).letters:
        if letter.status == "pending":
            received = mailboxes.delivery(ctx.db, letter.message.id, delivery.address_of(ctx))
            if received is not None:
                delivery.advance(ctx, letter.message, received, "delivered")
    return InboxPage(ctx, params).result(ctx, params)


def _letters(ctx: Context, params: InboxParams, address: str, after: int) -> list[InboxEntry]:
    most = params.limit + 1
    if params.show == "all":
        return mailboxes.all_(ctx.db, address, after, most, urgent=params.urgent_only)
    now = iso(ctx.sure)
    return mailboxes.unread(ctx.db, address, after, now, most, urgent=params.urgent_only)


def _after(cursor: str | None, epoch: str) -> tuple[int, bool]:
    """The number after which to list, and whether the cursor comes from another database."""
    if cursor is None:
        return 0, False
    known, colon, text = cursor.rpartition(":")
    if not colon or not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(
            "cursor: must be a cursor of acp/inbox", reason="schema_invalid", path="cursor"
        )
    return (int(text), False) if known == epoch else (0, True)


def markdown(
    ctx: Context, envelopes: list[dict[str, Any]], sources: list[str | None], box: Mailbox
) -> str:
    """Envelopes as text for an agent, each with the other node that vouches for it, and the counts
    of the box."""
    plain: list[dict[str, Any]] = orjson.loads(orjson.dumps(envelopes))
    authors = [
        author_of(ctx, envelope, node) for envelope, node in zip(plain, sources, strict=True)
    ]
    counts = ", ".join(f"{count} {name}" for name, count in box.counts().items())
    return f"{untrusted.inbox(plain, authors)}\n\nOf your box: {counts}."


def author_of(ctx: Context, envelope: dict[str, Any], node: str | None) -> Author:
    """The author of an envelope. Senders on this node have proved who they are by their key; for
    others, their `node` vouches."""
    return Author(envelope["from"], node or ctx.node.agent_id, "peer" if node else "verified")
