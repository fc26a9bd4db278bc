"""cacp/search: full-text search over mail, context packets and contracts."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas.base import Count, Cursor, Identifier, Params, Result, Text, Timestamp

SearchKind = Literal["mail", "context", "contract"]

QueryText = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class SearchParams(Params):
    query: QueryText
    kinds: Annotated[list[SearchKind], Field(min_length=1, max_length=3)] | None = None
    project_id: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Cursor | None = None


class SearchSnippet(Result):
    """A piece of a document's text. `marks` are the places of the words that were searched for:
    [from, to) in characters (Unicode code points) of `text`."""

    text: Text
    marks: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]


class SearchResultHit(Result):
    """A document that matches. `author` is the agent that wrote it; of a contract, the repo that
    proposed the current version. `type` is the message's, packet's or contract's, `status` a
    message's or a contract's. `threadId` is that of acp/thread."""

    kind: SearchKind
    title: Text
    snippet: SearchSnippet
    author: Identifier | None = None
    at: Timestamp
    type: Identifier
    status: Identifier | None = None
    project_id: Identifier | None = None
    project_name: Identifier | None = None
    contract_id: Identifier | None = None
    packet_id: Identifier | None = None
    message_id: Identifier | None = None
    thread_id: Identifier | None = None


class SearchResult(Result):
    """`indexing`: the node is still indexing about `waiting` documents, which are not among the
    hits yet."""

    hits: list[SearchResultHit]
    indexing: bool
    waiting: Count
    next_cursor: Cursor | None = None
