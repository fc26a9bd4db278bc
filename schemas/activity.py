"""cacp/activity/list: the changes that a caller may see."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Count, Identifier, Params, Result, Text, Timestamp

ChangeKind = Literal[
    "project",
    "repo",
    "contract",
    "receipt",
    "context",
    "file",
    "file_request",
    "peer",
    "conflict",
    "message",
]


class ListActivityParams(Params):
    project_id: Identifier | None = None
    repo: Identifier | None = None
    """The name of a repo: its own changes, and those that its present holder made in the
    project."""
    agent: Identifier | None = None
    """The agent that made the change, in any version."""
    kinds: Annotated[list[ChangeKind], Field(min_length=1, max_length=20)] | None = None
    """All that the caller may see by default; `message` is for humans' keys."""
    cursor: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    """`nextCursor` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    spans: Annotated[int, Field(ge=2, le=100)] | None = None
    """Count the changes too, in at most so many equal spans of time."""


class ActivityChange(Result):
    """A change. `name` is that of the contract, repo or project; `origin` the node that made it,
    and of what came from another node `actor` is that node."""

    seq: int
    timestamp: Timestamp
    origin: Identifier
    actor: Identifier
    action: Identifier
    kind: ChangeKind
    id: Identifier
    name: Identifier | None = None
    project_id: Identifier | None = None
    project: Identifier | None = None
    """The project's name."""
    outcome: Text


class ActivitySpan(Result):
    """How many changes there were in a span of time."""

    start: Timestamp
    count: Count


class ListActivityResult(Result):
    changes: list[ActivityChange]
    """The newest first."""
    next_cursor: int | None = None
    """Older changes may follow: a page ends early after it has looked at very many."""
    looked_back_to: Timestamp | None = None
    """The time of the oldest change that this page has looked at, when it ended early."""
    span_seconds: int | None = None
    spans: list[ActivitySpan] | None = None
    """The counts of the newest of the changes, the oldest span first."""
