"""cacp/search: full-text search over what the caller may read."""

from typing import Any, get_args

import orjson

from schemas.base import iso, present
from schemas.plain import one_line
from schemas.search import SearchKind, SearchParams, SearchResult
from server.domain import search as domain
from server.domain.access import GRANTS, check_project
from server.domain.agents import identity
from server.domain.errors import InvalidInput
from server.domain.search import SearchQuery
from server.methods.base import Context, open_project, page_of, reads
from server.store import attention, context_packets, messages, search
from server.store.search import SearchHit, SearchReader

TITLE_WIDTH = 200
INDEXING = 100
"""With fewer documents to index, which takes less than a second, the index counts as complete."""


@reads("cacp/search", SearchParams, SearchResult, wide=True, reach="own")
def search_(ctx: Context, params: SearchParams) -> dict[str, Any]:
    """Search mail, context packets and contracts (name, content, notes) by words, the latest first.
    All words must occur; "a phrase", the beginning of a word as `pay*`, and `-word` for what must
    not occur. Case and accents don't matter; createUser and user_id are found by their parts too.
    Mail is the caller's own, for a human's key also critical, gated and human-audit messages; it is
    left out with projectId, and for a key that is limited to projects.
    """
    if params.project_id is not None:
        check_project(ctx.caller.projects, params.project_id)
        open_project(ctx, params.project_id)
    query = domain.parse(params.query)
    hits = search.hits(
        ctx.db,
        query,
        _reader(ctx, params.project_id),
        params.kinds or get_args(SearchKind),
        _place(params.cursor),
        params.limit + 1,
    )
    page, more = page_of(hits, params.limit, lambda hit: str(hit.place))
    waiting = search.waiting(ctx.db)
    indexing = waiting > INDEXING or not search.is_ready(ctx.db)
    if ctx.caller.projects is not None:
        # It would count what other projects are given.
        waiting = 0
    names = attention.names_of(ctx.db, {hit.project_id for hit in page if hit.project_id})
    shown = []
    for hit in page:
        project = names.get(hit.project_id)
        shown.append(_shown(ctx, hit, query, project.name if project else None))
    return {"hits": shown, "indexing": indexing, "waiting": waiting, **more}


def _reader(ctx: Context, project_id: str | None) -> SearchReader:
    caller = ctx.caller
    # As for acp/query: mail is for the agents of this node.
    reads_mail = "write" in GRANTS[caller.trust] and caller.projects is None and project_id is None
    own = caller.projects if project_id is None else frozenset({project_id})
    return SearchReader(identity(caller.agent_id) if reads_mail else None, caller.human, own)


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidInput("cursor: must be a nextCursor that this method returned", path="cursor")
    return int(cursor)


def _shown(ctx: Context, hit: SearchHit, query: SearchQuery, project: str | None) -> dict[str, Any]:
    excerpt = domain.snippet(hit.body, query)
    shown = {
        "kind": hit.kind,
        "title": one_line(hit.title, TITLE_WIDTH),
        "snippet": {"text": excerpt.text, "marks": excerpt.marks},
        "projectId": hit.project_id or None,
        "projectName": project,
    }
    return present(shown | _SOURCES[hit.kind](ctx, hit))


def _of_message(ctx: Context, hit: SearchHit) -> dict[str, Any]:
    message = messages.find(ctx.db, hit.entity_id)
    assert message is not None, "hits are stored"
    return {
        "author": message.from_agent,
        "at": message.created_at,
        "type": message.type,
        "status": message.status,
        "messageId": message.id,
        "threadId": messages.thread_of(ctx.db, message.id),
    }


def _of_packet(ctx: Context, hit: SearchHit) -> dict[str, Any]:
    stored = context_packets.signed(ctx.db, hit.project_id, hit.entity_id)
    assert stored is not None, "hits are stored"
    packet = orjson.loads(stored[0])
    return {
        "author": packet["from_agent"],
        "at": packet["timestamp"],
        "type": packet["type"],
        "packetId": hit.entity_id,
    }


def _of_contract(ctx: Context, hit: SearchHit) -> dict[str, Any]:
    contract = search.contract_hit(ctx.db, hit.project_id, hit.entity_id)
    return {
        "author": contract.repo,
        "at": iso(contract.updated_at),
        "type": contract.type,
        "status": contract.status,
        "contractId": hit.entity_id,
    }


_SOURCES = {"mail": _of_message, "context": _of_packet, "contract": _of_contract}
