"""Expiry and retention of messages (acp-canonical §4.1, §12.7).

Both go by the sure time (`Context.sure`), because a message that a wrong clock ended stays ended.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from schemas.acp import ACPPolicy, ACPPriority
from schemas.base import iso
from server.domain.acp import policy
from server.domain.agents import identity
from server.methods.acp import delivery
from server.methods.base import Context
from server.store import mail_outbox, mailboxes, messages
from server.store.messages import MessageRow

DAY = 24 * 3600 * 1_000_000
"""How long before its purge an unread message expires (microseconds), so that the nodes involved
can learn of it."""
OLD = "it reached the end of its retention"


class Ageing(NamedTuple):
    """A sweep of messages by age. `find` returns the ids of messages that are due, up to a limit;
    `end` handles one and returns for how many recipients it became a dead letter."""

    name: str
    find: Callable[[Context, int], list[str]]
    end: Callable[[Context, str], int]


def _due(ctx: Context, limit: int) -> list[str]:
    return messages.due(ctx.db, iso(ctx.sure), limit)


def _about_to_be_purged(ctx: Context, limit: int) -> list[str]:
    early = min(DAY, ctx.node.acp.retention // 10)
    return messages.unread(ctx.db, iso(ctx.sure - ctx.node.acp.retention + early), limit)


def _old(ctx: Context, limit: int) -> list[str]:
    return messages.old(ctx.db, _kept_since(ctx), limit)


def _retire(ctx: Context, message_id: str) -> int:
    """Move a message to the archive; returns for how many recipients it became a dead letter. Dead
    letters can be replayed from the archive."""
    dead = _expire(ctx, message_id, OLD, final=True)
    message = messages.find(ctx.db, message_id)
    if message is not None:
        _archive(ctx, message)
    return dead


def forget(ctx: Context) -> None:
    """Forget client ids and processed marks that are older than the retention of messages."""
    messages.forget(ctx.db, _kept_since(ctx))


def _kept_since(ctx: Context) -> str:
    return iso(ctx.sure - ctx.node.acp.retention)


def _archive(ctx: Context, message: MessageRow) -> None:
    meant = ACPPolicy.model_validate_json(message.policy_json)
    # Dead letters belong to the node where the message was sent.
    sent_here = mail_outbox.source(ctx.db, message.id) is None
    messages.archive(
        ctx.db,
        message.id,
        mailboxes.whole(ctx.db, message),
        iso(ctx.stamp),
        sender=identity(message.from_agent) if sent_here else None,
        open_to_humans=policy.is_open_to_humans(meant, cast(ACPPriority, message.priority)),
    )


def _expire(ctx: Context, message_id: str, why: str, *, final: bool = False) -> int:
    """Expire a message; returns for how many recipients it did now."""
    message = messages.find(ctx.db, message_id)
    if message is None:
        return 0
    ended = delivery.give_up(ctx, message, "expired", why, final=final)
    if ended and delivery.is_audited(message):
        delivery.audit(ctx, "expired", message.id)
    return ended


EXPIRE = Ageing("expired", _due, partial(_expire, why="its expires_at passed"))
LAPSE = Ageing("lapsed", _about_to_be_purged, partial(_expire, why=OLD, final=True))
"""Expires unread messages shortly before their purge."""
RETAIN = Ageing("archived", _old, _retire)
