"""acp/query: messages that the caller may see, with receipts (acp-canonical §11)."""

from typing import Any

from schemas.acp_calls import QueryParams, QueryResult
from schemas.base import iso, present, stamp_of
from server.domain.agents import identity
from server.methods.acp.delivery import address_of
from server.methods.acp.refusals import LOOKING
from server.methods.base import Context, page_of, reads
from server.store import mail_outbox, mailboxes, messages
from server.store.messages import MessageRow


@reads("acp/query", QueryParams, QueryResult, access="write", wide=True, guard=LOOKING)
def query(ctx: Context, params: QueryParams) -> dict[str, Any]:
    """List messages that the caller sent or received, newest first, by agent, thread, type, status,
    topic, time or urgency; each with its receipts, which tell delivered from read. A human's key
    also sees critical, gated and human-audit messages."""
    rows = messages.search(
        ctx.db,
        address=address_of(ctx),
        human=ctx.caller.human,
        before=params.cursor,
        id=params.message_id,
        thread_id=params.thread_id,
        type=params.type,
        status=params.status,
        topic=params.topic,
        team=params.team,
        held=params.held,
        urgent=params.urgent_only,
        agent=None if params.agent is None else identity(params.agent),
        since=_time(params.since),
        until=_time(params.until),
        limit=params.limit + 1,
    )
    page, more = page_of(rows, params.limit, lambda row: row.id)
    return {"messages": [with_receipts(ctx, row) for row in page], **more}


def with_receipts(ctx: Context, message: MessageRow) -> dict[str, Any]:
    """A message with its receipts, as `Found`."""
    shown = {
        "message": messages.envelope(message),
        "receipts": mailboxes.receipts(ctx.db, message.id),
        "held": message.held,
        "vouchedBy": mail_outbox.source(ctx.db, message.id),
    }
    return present(shown)


def _time(text: str | None) -> str | None:
    return None if text is None else iso(stamp_of(text))
