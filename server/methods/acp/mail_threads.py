"""acp/threads and acp/thread: the caller's mail by thread."""

from typing import Any

import orjson

from schemas.acp_threads import (
    MailThreadParams,
    MailThreadResult,
    MailThreadsParams,
    MailThreadsResult,
)
from schemas.base import present
from schemas.plain import one_line
from server.domain.errors import NotFound
from server.methods.acp.delivery import address_of
from server.methods.acp.query import with_receipts
from server.methods.acp.refusals import LOOKING
from server.methods.base import Context, page_of, reads
from server.store import mail_threads, messages
from server.store.mail_threads import ListedThread

SUMMARY_WIDTH = 200
RECIPIENTS_SHOWN = 5


@reads(
    "acp/threads", MailThreadsParams, MailThreadsResult, access="write", wide=True, guard=LOOKING
)
def threads(ctx: Context, params: MailThreadsParams) -> dict[str, Any]:
    """List the threads of the caller's mail, newest first, each with its last message. A human's
    key also sees those with critical, gated and human-audit messages."""
    listed = mail_threads.listed(
        ctx.db,
        address_of(ctx),
        human=ctx.caller.human,
        before=params.cursor,
        limit=params.limit + 1,
    )
    page, more = page_of(listed, params.limit, lambda thread: thread.last)
    shown = [_shown(ctx, thread) for thread in page]
    return {"threads": [thread for thread in shown if thread is not None], **more}


def _shown(ctx: Context, thread: ListedThread) -> dict[str, Any] | None:
    """The MailThreadSummary; None when its last message has gone to the archive."""
    message = messages.find(ctx.db, thread.last)
    if message is None:
        return None
    recipients = orjson.loads(message.to_agents_json)
    summary = str(orjson.loads(message.payload_json).get("summary", ""))
    human, address = ctx.caller.human, address_of(ctx)
    topic = mail_threads.topic(ctx.db, thread.thread_id, address, human=human)
    counts = mail_threads.counts(ctx.db, thread.thread_id, address, human=human)
    shown = {
        "threadId": thread.thread_id,
        "name": message.thread_id or message.id,
        "topic": one_line(topic or message.type, SUMMARY_WIDTH),
        "summary": one_line(summary, SUMMARY_WIDTH),
        "lastMessageId": message.id,
        "fromAgent": message.from_agent,
        "to": recipients[:RECIPIENTS_SHOWN],
        "moreRecipients": max(0, len(recipients) - RECIPIENTS_SHOWN),
        "type": message.type,
        "priority": message.priority,
        "status": message.status,
        "held": message.held,
        "at": message.created_at,
        **counts._asdict(),
    }
    return present(shown)


@reads("acp/thread", MailThreadParams, MailThreadResult, access="write", wide=True, guard=LOOKING)
def thread(ctx: Context, params: MailThreadParams) -> dict[str, Any]:
    """Return the last messages of a thread, oldest first, each with its receipts; only those that
    the caller may see, as in acp/query."""
    rows = mail_threads.seen(
        ctx.db,
        params.thread_id,
        address_of(ctx),
        human=ctx.caller.human,
        before=params.cursor,
        limit=params.limit + 1,
    )
    if not rows:
        raise NotFound(
            f"There is no thread {params.thread_id}, or no message of it is for you",
            kind="thread",
            threadId=params.thread_id,
        )
    page, more = page_of(rows, params.limit, lambda row: row.id)
    name = page[0].thread_id or page[0].id
    shown = [with_receipts(ctx, row) for row in reversed(page)]
    return {"threadId": params.thread_id, "name": name, "messages": shown, **more}
