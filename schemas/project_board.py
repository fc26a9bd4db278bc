"""cacp/project/board, timeline and stateAt: a project at a glance, its story, and as it was."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.attention import AttentionKind
from schemas.base import Count, Cursor, Identifier, Params, Result, Text, Timestamp
from schemas.contract import (
    AgreementPolicy,
    ContractStatus,
    ContractType,
    TimelineStep,
)
from schemas.project import ProjectStatus
from schemas.verification import VerificationPolicy

ProjectStep = Literal[
    TimelineStep,
    "created",
    "joined",
    "released",
    "asked",
    "answered",
    "decided",
    "shared",
    "archived",
    "reopened",
]
"""A step of the project's story; on a contract it is a step of the contract's timeline."""
PageLimit = Annotated[int, Field(ge=1, le=100)]


class BoardParams(Params):
    project_id: Identifier
    status: ContractStatus | None = None
    """Only the contracts in this status."""
    cursor: Cursor | None = None
    """`nextCursor` of that status's column: the contracts after it."""
    limit: PageLimit = 30
    """The most contracts of each status."""


class BoardStep(Result):
    """A step that a contract waits for, and the repo that must take it. Of several repos that must
    verify, one is enough. `agent_id` is the repo's holder."""

    kind: AttentionKind
    repo_id: Identifier
    name: Identifier | None = None
    agent_id: Identifier | None = None
    since: Timestamp


class BoardContract(Result):
    """A contract in short, with the steps that it waits for. `is_in_conflict`: a version lost a
    race, and its author has not yet responded to the one that won."""

    contract_id: Identifier
    type: ContractType
    name: Identifier
    version: int
    status: ContractStatus
    proposed_by: Identifier
    proposed_by_name: Identifier | None = None
    updated_at: Timestamp
    waiting_since: Timestamp | None = None
    is_in_conflict: bool
    awaited_steps: list[BoardStep]


class BoardColumn(Result):
    """The contracts in one status: those that have waited longest first, then those that wait for
    nothing, the last changed first."""

    status: ContractStatus
    count: Count
    contracts: list[BoardContract]
    next_cursor: Cursor | None = None


class BoardRepo(Result):
    """A repo, its agent, and how much waits for it. `last_seen` and `is_awake` are absent when this
    node has not seen the agent since it started, and for callers to whom cacp/agent/list is
    closed."""

    repo_id: Identifier
    name: Identifier
    role: Identifier
    agent_id: Identifier | None = None
    last_seen: Timestamp | None = None
    is_awake: bool | None = None
    steps: dict[AttentionKind, int]
    """How many steps of each kind contracts wait for it to take."""
    contract_count: Count
    """How many contracts wait for it."""
    waiting_since: Timestamp | None = None


class BoardQuestion(Result):
    """A question that no other repo has answered; its text may be cut."""

    packet_id: Identifier
    repo_id: Identifier
    name: Identifier | None = None
    agent_id: Identifier
    asked_at: Timestamp
    question: Text
    is_urgent: bool


class BoardDecision(Result):
    """A recorded decision; its texts may be cut."""

    packet_id: Identifier
    repo_id: Identifier
    name: Identifier | None = None
    agent_id: Identifier
    decided_at: Timestamp
    decision: Text
    chosen: Text | None = None


class ProjectProgress(Result):
    """How far the contracts are."""

    contract_count: Count
    verified_count: Count
    waiting_count: Count
    """Contracts that wait for a step of a repo."""


class ProjectBoard(Result):
    """A project as a board. `repos`: the one for which most contracts wait comes first. `questions`
    are the oldest open ones, `decisions` the newest."""

    project_id: Identifier
    name: Identifier
    objective: Text
    status: ProjectStatus
    agreement_policy: AgreementPolicy
    verification_policy: VerificationPolicy
    created_at: Timestamp
    archived_by: Identifier | None = None
    archived_at: Timestamp | None = None
    progress: ProjectProgress
    columns: list[BoardColumn]
    repos: list[BoardRepo]
    questions: list[BoardQuestion]
    question_count: Count
    decisions: list[BoardDecision]


class ProjectTimelineParams(Params):
    project_id: Identifier
    cursor: Cursor | None = None
    limit: PageLimit = 30


class ProjectMoment(Result):
    """One step of a project's story. `id` and `name` are those of the contract, repo, packet or
    project; `repo` is the acting repo's name. `note` may be cut."""

    timestamp: Timestamp
    subject: Literal["contract", "context", "repo", "project"]
    id: Identifier
    name: Identifier | None = None
    step: ProjectStep
    version: int | None = None
    round: int | None = None
    repo_id: Identifier | None = None
    repo: Identifier | None = None
    agent_id: Identifier | None = None
    note: Text | None = None


class ProjectTimelineResult(Result):
    moments: list[ProjectMoment]
    """The newest first."""
    next_cursor: Cursor | None = None


class StateAtParams(Params):
    project_id: Identifier
    at: Timestamp | None = None
    """The time; the latest change by default."""
    change: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Instead of a time: the number of a change, 1 for the first."""
    limit: PageLimit = 30
    """The most contracts of each status."""


class PastRepo(Result):
    """A repo that was known then. `agent_id` is absent when nobody held it, or when its holder is
    no longer known; `unknown` then says so."""

    repo_id: Identifier
    name: Identifier
    agent_id: Identifier | None = None


class ProjectStateAt(Result):
    """A project as it was. `change_count` counts the times at which it changed; `change` is the
    number of the last one up to `at`, 0 before the first; `steps` are what was done at it."""

    project_id: Identifier
    name: Identifier
    at: Timestamp
    change_count: Count
    change: Count
    changed_at: Timestamp | None = None
    first: Timestamp | None = None
    last: Timestamp | None = None
    previous: Timestamp | None = None
    next: Timestamp | None = None
    steps: list[ProjectMoment]
    progress: ProjectProgress
    columns: list[BoardColumn]
    repos: list[PastRepo]
    question_count: Count
    decision_count: Count
    packet_count: Count
    unknown: list[Text]
    """What this node can't know of that time, in sentences."""
