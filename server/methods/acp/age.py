"""What time does to messages: they expire, and move to the archive (acp-canonical §4.1, §12.7)."""

from typing import NamedTuple, cast

from schemas.acp import ACPPolicy, ACPPriority
from schemas.base import iso
from server.domain.acp import policy
from server.domain.agents import identity
from server.methods.acp import course
from server.methods.base import Context
from server.store import mailboxes, messages, posting
from server.store.messages import Message

DAY = 24 * 3600 * 1_000_000
"""How long before it is purged a message expires that nobody has read (microseconds): as long, the
nodes that have to do with it can be told."""
OLD = "it was as old as messages are kept"


class Aged(NamedTuple):
    """So many messages; for how many recipients they are dead letters now."""

    messages: int
    dead: int


def expire(ctx: Context, limit: int) -> Aged:
    """Expire messages whose time is over, `limit` of them at most."""
    due = messages.due(ctx.db, iso(ctx.stamp), limit)
    return Aged(len(due), sum(_expire(ctx, one, "its time was over") for one in due))


def lapse(ctx: Context, limit: int) -> Aged:
    """Expire messages that are about to be purged and that nobody has read, `limit` of them at
    most."""
    early = min(DAY, ctx.node.acp.retention // 10)
    old = messages.unread(ctx.db, iso(ctx.stamp - ctx.node.acp.retention + early), limit)
    return Aged(len(old), sum(_expire(ctx, one, OLD, final=True) for one in old))


def retain(ctx: Context, limit: int) -> Aged:
    """Move messages that are older than is kept to the archive, `limit` of them at most. What did
    not arrive is a dead letter still, and can be replayed from there."""
    before = iso(ctx.stamp - ctx.node.acp.retention)
    old = messages.old(ctx.db, before, limit)
    dead = 0
    for message_id in old:
        dead += _expire(ctx, message_id, OLD, final=True)
        message = messages.find(ctx.db, message_id)
        if message is not None:
            _archive(ctx, message)
    messages.forget(ctx.db, before)
    return Aged(len(old), dead)


def _archive(ctx: Context, message: Message) -> None:
    meant = ACPPolicy.model_validate_json(message.policy_json)
    # The dead letters of a message from elsewhere are kept where it was sent.
    sent_here = posting.source(ctx.db, message.id) is None
    messages.archive(
        ctx.db,
        message.id,
        mailboxes.whole(ctx.db, message),
        iso(ctx.stamp),
        sender=identity(message.from_agent) if sent_here else None,
        open_to_humans=policy.is_open_to_humans(meant, cast(ACPPriority, message.priority)),
    )


def _expire(ctx: Context, message_id: str, why: str, *, final: bool = False) -> int:
    """For how many recipients the message has expired now."""
    message = messages.find(ctx.db, message_id)
    if message is None:
        return 0
    ended = course.give_up(ctx, message, "expired", why, final=final)
    if ended and course.is_audited(message):
        course.audit(ctx, "expired", message.id)
    return ended
