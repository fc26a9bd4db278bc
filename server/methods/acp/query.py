"""acp/query: messages that the caller may see, with receipts (acp-canonical §11)."""

from typing import Any

from schemas.acp_calls import QueryParams, QueryResult
from schemas.base import iso, present, stamp_of
from server.domain.agents import identity
from server.methods.acp.delivery import address_of
from server.methods.acp.refusals import LOOKING
from server.methods.base import Context, reads
from server.store import mail_outbox, mailboxes, messages
from server.store.messages import MessageRow


@reads("acp/query", QueryParams, QueryResult, access="write", wide=True, guard=LOOKING)
def query(ctx: Context, params: QueryParams) -> dict[str, Any]:
    """Messages that the caller sent or was sent, newest first, by agent, thread, type, status,
    topic or time; each with its receipts, which tell delivered from read. A human's key sees also
    what is critical, gated or for human audit."""
    rows = messages.found(
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
        agent=None if params.agent is None else identity(params.agent),
        since=_time(params.since),
        until=_time(params.until),
        limit=params.limit + 1,
    )
    result: dict[str, Any] = {"messages": [_found(ctx, row) for row in rows[: params.limit]]}
    if len(rows) > params.limit:
        result["nextCursor"] = rows[params.limit - 1].id
    return result


def _found(ctx: Context, message: MessageRow) -> dict[str, Any]:
    found = {
        "message": messages.envelope(message),
        "receipts": mailboxes.receipts(ctx.db, message.id),
        "held": message.held,
        "vouchedBy": mail_outbox.source(ctx.db, message.id),
    }
    return present(found)


def _time(text: str | None) -> str | None:
    return None if text is None else iso(stamp_of(text))
