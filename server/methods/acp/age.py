"""What time does to messages: they expire, and move to the archive (acp-canonical §4.1, §12.7)."""

import orjson

from schemas.base import iso
from server.methods.acp import course
from server.methods.base import Context
from server.store import mailboxes, messages


def expire(ctx: Context, limit: int) -> int:
    """Expire messages whose time is over, `limit` of them at most; how many they were."""
    due = messages.due(ctx.db, iso(ctx.stamp), limit)
    for message_id in due:
        message = messages.find(ctx.db, message_id)
        if message is not None:
            course.give_up(ctx, message, "expired", "its time was over")
            if course.is_audited(message):
                course.audit(ctx, "expired", message_id)
    return len(due)


def retain(ctx: Context, limit: int) -> int:
    """Move messages that are older than is kept to the archive, `limit` of them at most; how many
    they were. What nobody has read by then expires first."""
    before = iso(ctx.stamp - ctx.node.acp.retention)
    old = messages.old(ctx.db, before, limit)
    now = iso(ctx.stamp)
    for message_id in old:
        message = messages.find(ctx.db, message_id)
        if message is None:
            continue
        why = "it was older than messages are kept"
        course.give_up(ctx, message, "expired", why, final=True)
        whole = messages.find(ctx.db, message_id) or message
        receipts = [mailboxes.receipt(one) for one in mailboxes.deliveries(ctx.db, message_id)]
        document = {"message": messages.envelope(whole), "receipts": receipts}
        messages.archive(ctx.db, message_id, orjson.dumps(document), now)
    messages.forget(ctx.db, before)
    return len(old)
