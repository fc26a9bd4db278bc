"""Attention: what waits for a caller, derived from the facts that the node holds (design-next N1).

Items are computed at each call and never stored as messages. An item ends with the step that its
`next` names.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas.acp import ACPMessageEnvelope
from schemas.base import Count, Identifier, JsonObject, Params, Result, Stamp, Text, Timestamp

AttentionKind = Literal[
    "join",
    "respond",
    "revise",
    "implement",
    "repair",
    "verify",
    "answer",
    "conflict",
    "handoff",
    "approve",
    "mail",
]
Urgency = Literal["urgent", "high", "normal", "low"]
SubjectType = Literal["contract", "question", "repo", "handoff", "message", "mailbox"]
ItemId = Annotated[str, StringConstraints(pattern="^[a-z]{1,20}-[0-9a-f]{24}$")]
ItemCursor = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class AttentionSubject(Result):
    """What an item is about."""

    type: SubjectType
    id: Identifier
    name: Text


class AttentionStep(Result):
    """A call that closes the item. `params` are those of `method`; `tool` is the MCP tool over it,
    absent where there is none, and takes `tool_params` besides."""

    tool: Identifier | None = None
    method: Identifier
    params: JsonObject
    tool_params: JsonObject | None = None
    fill: dict[str, Text] | None = None
    """Params that the caller must decide, by name, and what to put there. A dot leads into an
    object: `payload.answer`."""


class AttentionItem(Result):
    """One thing that waits for the caller."""

    id: ItemId
    """The same until something else must be done: another version, round, request or status."""
    kind: AttentionKind
    urgency: Urgency
    project_id: Identifier | None = None
    project: Identifier | None = None
    """The project's name."""
    repo_id: Identifier | None = None
    """The caller's repo that must act."""
    subject: AttentionSubject
    since: Timestamp
    summary: Text
    """One line."""
    detail: JsonObject
    """What is needed to act: comments, suggested changes, differences, the question. Long values
    are cut, and say so."""
    next: list[AttentionStep]


class ListAttentionParams(Params):
    project_id: Identifier | None = None
    repo_id: Identifier | None = None
    kinds: Annotated[list[AttentionKind], Field(min_length=1, max_length=50)] | None = None
    urgent_only: bool = False
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    after: ItemCursor | None = None
    """`next` of the page before, or the id of an item: the items after it."""


class ListAttentionResult(Result):
    items: list[AttentionItem]
    """The most urgent first, then the oldest."""
    counts: dict[AttentionKind, int]
    """How many items of each kind there are, over all pages."""
    total: int
    urgent: int
    next: ItemCursor | None = None
    """The `after` of the next page."""


class ClaimAttentionParams(Params):
    session: Identifier
    """Any name of the session, the same at each claim."""
    urgent: bool = False
    """Only what is urgent, and that once, even if it was shown before: for a session that would
    stop."""
    again: bool = False
    """The session has lost what it was shown."""
    received: Stamp | None = None
    """`claim` of the last answer that reached the session, 0 if none has: what later answers gave
    out is shown again."""
    limit: Annotated[int, Field(ge=0, le=100)] = 20
    size: Annotated[int, Field(ge=2_000, le=1_000_000)] = 1_000_000
    """The limit of `text` in characters; an entry that exceeds it alone is only named."""
    format: Literal["json", "markdown"] = "json"
    wait: Annotated[float, Field(ge=0, le=60)] = 0
    """Seconds to wait until there is something to show."""


class ClaimAttentionResult(Result):
    """`items` and `messages` are those to show now; the rest counts all that waits. `more`: there
    are further ones to show. `state`: whether this node shows them to sessions of the caller."""

    address: Identifier
    claim: Stamp
    state: Literal["available", "disabled"]
    items: list[AttentionItem]
    messages: list[ACPMessageEnvelope]
    more: bool
    counts: dict[AttentionKind, int]
    total: Count
    urgent: Count
    unread: Count
    text: str | None = None
    """With `format: markdown`: what to show now."""
    summary: str | None = None
    """How much waits, in a line."""
