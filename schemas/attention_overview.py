"""The overview of attention: what is open between all agents that a caller may see, and what of it
needs a person or has waited too long."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.attention import AttentionKind, AttentionSubject, ItemCursor, ItemId, Urgency
from schemas.base import Count, Identifier, JsonObject, Params, Result, Text, Timestamp

OverviewKind = Literal[AttentionKind, "absent", "undelivered"]
"""Also: an agent that is away while others wait for it, and messages that reached nobody."""
OverviewGroup = Literal["person", "overdue", "in_time"]
"""What needs a person; what has waited too long for agents; what agents are in time with."""
PersonReason = Literal[
    "approval", "asked", "conflict", "absent", "vacant", "escalated", "undelivered"
]
PARTIES_SHOWN = 10


class AwaitedPartyView(Result):
    """A repo, its agent, or both. A repo without an agent is held by nobody."""

    repo_id: Identifier | None = None
    repo: Identifier | None = None
    agent_id: Identifier | None = None
    last_seen: Timestamp | None = None
    """When the agent last called this node since its start."""


class OverviewAction(Result):
    """What the caller can do about an item: `revoke` ends the access of an agent. `params` are
    those of `method` that follow from the item; the caller adds the rest."""

    name: Literal[
        "approve",
        "refuse",
        "agree",
        "request_change",
        "answer",
        "answer_mail",
        "nudge",
        "release",
        "revoke",
        "revoke_handoff",
    ]
    method: Identifier
    params: JsonObject


class OverviewItem(Result):
    """One thing that is open. `must_act` has who must do the next step, any one of them if
    `any_of`, and is empty if only a person can; `blocks` has who waits for it. Both have at most
    ten entries; `must_act_count` and `unblocks` count all."""

    id: ItemId
    kind: OverviewKind
    group: OverviewGroup
    urgency: Urgency
    project_id: Identifier | None = None
    project: Identifier | None = None
    verb: Text
    """What is to be done with the subject, such as `respond to`."""
    subject: AttentionSubject
    version: int | None = None
    """The version of the contract."""
    by: Identifier | None = None
    """The agent that wrote the name of the subject."""
    must_act: list[AwaitedPartyView]
    must_act_count: Count
    any_of: bool
    blocks: list[AwaitedPartyView]
    unblocks: Count
    """How many agents wait for it."""
    since: Timestamp
    overdue: bool
    person_reason: PersonReason | None = None
    """Why a person must act."""
    mark: Text | None = None
    """Why it needs a look, in a word or two."""
    waiting: Count | None = None
    """Of an agent that is away or a repo without one: how many items wait for it."""
    actions: list[OverviewAction]


class OverviewProject(Result):
    """A project with how many items it has."""

    project_id: Identifier
    project: Identifier
    count: Count


class OverviewAttentionParams(Params):
    project_id: Identifier | None = None
    groups: Annotated[list[OverviewGroup], Field(min_length=1, max_length=3)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    after: ItemCursor | None = None
    """`next` of the page before."""


class OverviewAttentionResult(Result):
    items: list[OverviewItem]
    """What needs a person, then what has waited too long, then the rest; in each first what
    unblocks most agents, then the most urgent, then the oldest."""
    groups: dict[OverviewGroup, int]
    """How many items each group has, over all pages and groups."""
    projects: list[OverviewProject]
    """Those of the items of all pages and groups; the one with most items first, 100 at most."""
    total: Count
    hidden: Count
    """Messages and approvals that the caller's key may not see."""
    next: ItemCursor | None = None
    """The `after` of the next page."""
