"""cacp/attention/claim: what a session of an agent is shown, each entry once (design-next N1)."""

import asyncio
import time
from collections import Counter
from functools import partial
from typing import Any

import orjson

from schemas.acp import ACPPriority
from schemas.attention import ClaimAttentionParams, ClaimAttentionResult
from schemas.base import iso, present
from server.domain import session_feed, session_text
from server.domain.agents import identity
from server.domain.errors import RateLimited
from server.domain.session_feed import FeedClaim, FeedEntry
from server.domain.untrusted import inline, message_text
from server.methods.acp import delivery
from server.methods.acp.inbox import author_of
from server.methods.base import CallSession, Context, waits
from server.methods.cacp.attention import waiting_for
from server.store import mail_outbox, mailboxes, messages, sessions
from server.store.mailboxes import Mailbox

PAUSE = 0.2
"""Seconds between two looks of a waiting call."""
WAITING_MAX = 20
"""Calls of one agent that wait at a time: each commit has each of them look at all that waits."""
MOST = 200
"""Unread messages that are looked at; those behind them wait until some are acknowledged."""
URGENT_MAIL = ("high", "critical")


@waits(
    "cacp/attention/claim",
    ClaimAttentionParams,
    ClaimAttentionResult,
    access="write",
    reach="own",
)
async def claim(session: CallSession, params: ClaimAttentionParams) -> dict[str, Any]:
    """Take what to show to a session of the caller now: attention items and unread messages that
    this session was not shown yet. The rest is counted.

    For hooks and channels: one call at each turn. Messages in the answer are marked as delivered
    and stay in the inbox; messages of low priority are only counted. What a session was shown is
    forgotten after 30 days, and of each agent but the last 100 sessions. Of an agent, 20 calls may
    wait at a time.
    """
    if not params.wait:
        return await _claim(session, params)
    waiting, address = session.node.waiting_claims, identity(session.caller.agent_id)
    if waiting[address] >= WAITING_MAX:
        raise RateLimited(
            f"You have {WAITING_MAX} calls that wait for what is new, which is the limit: end one",
            retryAfter=5,
        )
    waiting[address] += 1
    try:
        return await _claim(session, params)
    finally:
        waiting[address] -= 1
        if not waiting[address]:
            del waiting[address]


async def _claim(session: CallSession, params: ClaimAttentionParams) -> dict[str, Any]:
    until = time.monotonic() + params.wait
    while True:
        next_commit = session.database.next_commit
        if await session.read(lambda ctx: ClaimPage(ctx, params).has_news):
            return await session.write(partial(_claimed, params=params))
        left = until - time.monotonic()
        if left <= 0 or session.stopping.is_set():
            return await session.read(lambda ctx: ClaimPage(ctx, params).result())
        await session.until(next_commit, left)
        # Commits come in groups; one look is enough for many.
        await session.until(asyncio.Event(), min(PAUSE, left))
        await session.recheck_access()


def _claimed(ctx: Context, params: ClaimAttentionParams) -> dict[str, Any]:
    page = ClaimPage(ctx, params)
    page.note()
    return page.result()


class ClaimPage:
    """What a session is shown by one claim."""

    def __init__(self, ctx: Context, params: ClaimAttentionParams) -> None:
        self.ctx, self.params = ctx, params
        self.address = delivery.address_of(ctx)
        self.is_served = delivery.serves_session(ctx)
        self.claim = FeedClaim(ctx.now, params.urgent, params.again, params.received)
        waiting = sorted(waiting_for(ctx), key=lambda entry: entry.rank)
        self.counts = Counter(entry.kind for entry in waiting)
        self.urgent = sum(entry.urgency == "urgent" for entry in waiting)
        # Of mail, a session is shown the messages.
        self.items = {entry.id: entry for entry in waiting if entry.kind != "mail"}
        self.letters, self.unread = self._mail()
        self.before = sessions.entries(ctx.db, self.address, params.session)
        self.standing = session_feed.standing(self.before, self.claim)
        self.fresh = session_feed.fresh(self._entries(), self.standing, self.claim)
        self.wires: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}
        limit = params.limit if self.is_served else 0
        count = session_feed.fitting(map(self._render, self.fresh), self._room(), limit)
        self.shown = [entry for entry in self.fresh[:count] if entry.id in self.wires]

    @property
    def has_news(self) -> bool:
        """Whether the claim changes what the node knows about the session."""
        return bool(self.shown) or self.standing != self.before

    def note(self) -> None:
        """Note what is shown, and forget what does not wait any more."""
        db, session = self.ctx.db, self.params.session
        sessions.expire(db, self.ctx.now - session_feed.KEPT)
        over = {id for id in self.before if id not in self.items and id not in self.letters}
        sessions.drop(db, self.address, session, over)
        after = self.standing | session_feed.noted(self.shown, self.standing, self.claim)
        changed = {
            id: state
            for id, state in after.items()
            if id not in over and state != self.before.get(id)
        }
        sessions.put(db, self.address, session, changed)
        if not self.before:
            sessions.drop_older(db, self.address, session_feed.SESSIONS_MAX)
        for entry in self.shown:
            if entry.id in self.letters:
                self._deliver(entry.id)

    def result(self) -> dict[str, Any]:
        """The ClaimAttentionResult."""
        shown = [entry.id for entry in self.shown]
        summary = session_text.summary(self.counts, self.urgent, self.unread)
        markdown = self.params.format == "markdown" and shown
        return present(
            {
                "address": self.address,
                "claim": self.claim.now,
                "state": "available" if self.is_served else "disabled",
                "items": [self.wires[id] for id in shown if id in self.items],
                "messages": [self.wires[id] for id in shown if id in self.letters],
                "more": len(self.fresh) > len(shown),
                "counts": self.counts,
                "total": sum(self.counts.values()),
                "urgent": self.urgent,
                "unread": self.unread,
                "text": self._text(shown, summary) if markdown else None,
                "summary": summary if summary and self.is_served else None,
            }
        )

    def _mail(self) -> tuple[dict[str, ACPPriority], int]:
        """The priorities of the unread messages by id, and how many there are."""
        if self.ctx.caller.projects is not None:
            # Mail is no project's (`acp/inbox`).
            return {}, 0
        db = self.ctx.db
        box = mailboxes.box(db, self.address) or Mailbox()
        heads = mailboxes.unread_heads(db, self.address, iso(self.ctx.sure), MOST)
        return heads, box.counts()["unread"]

    def _entries(self) -> list[FeedEntry]:
        """What waits, the urgent first; messages of low priority are only counted."""
        items = [FeedEntry(id, item.urgency == "urgent") for id, item in self.items.items()]
        mail = [
            FeedEntry(id, priority in URGENT_MAIL)
            for id, priority in self.letters.items()
            if priority != "low"
        ]
        return sorted([*items, *mail], key=lambda entry: not entry.urgent)

    def _deliver(self, message_id: str) -> None:
        received = mailboxes.delivery(self.ctx.db, message_id, self.address)
        message = messages.find(self.ctx.db, message_id)
        if received is not None and message is not None and received.status == "pending":
            delivery.advance(self.ctx, message, received, "delivered")

    # --- text -----------------------------------------------------------------------------------

    def _render(self, entry: FeedEntry) -> str:
        """The text of an entry. What has ended meanwhile has none."""
        place = len(self.texts) + 1
        if entry.id in self.items:
            item = self.items[entry.id].full()
            if item is None:
                return ""
            self.wires[entry.id] = item.wire()
            self.texts[entry.id] = session_text.item(self.wires[entry.id], place)
        else:
            message = messages.find(self.ctx.db, entry.id)
            if message is None:
                return ""
            self.wires[entry.id] = messages.envelope(message)
            envelope = orjson.loads(orjson.dumps(self.wires[entry.id]))
            author = author_of(self.ctx, envelope, mail_outbox.source(self.ctx.db, entry.id))
            self.texts[entry.id] = message_text(envelope, author, f"{place}. ")
        return self.texts[entry.id]

    def _room(self) -> int:
        """The characters that the entries may take; the frame around them takes the rest."""
        frame = 0 if self.params.format == "json" else session_text.FRAME
        return self.params.size - frame

    def _text(self, shown: list[str], summary: str) -> str:
        texts = [self.texts[id] for id in shown]
        if len(texts[0]) > self._room():
            texts[0] = self._named(shown[0])
        return session_text.feed(
            texts,
            summary,
            has_items=any(id in self.items for id in shown),
            has_mail=any(id in self.letters for id in shown),
            urgent=self.params.urgent,
        )

    def _named(self, id: str) -> str:
        """The text in place of an entry that is too long alone."""
        if id in self.items:
            return session_text.named(self.wires[id])
        return (
            f"A message of priority {self.letters[id]} from {inline(self.wires[id]['from'])} is "
            f"too long to be shown here: read {inline(id)} with `acp_query` (message_id and "
            "bodies) or `cacp inbox`."
        )
