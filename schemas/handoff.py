"""Handoffs: the package and `acp/handoff` (acp-canonical §7, §11)."""

from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema, model_validator

from schemas.acp import (
    ACPArtifactRef,
    ACPExternalRef,
    ACPGivenArtifactRef,
    ACPParams,
    ACPPriority,
    ACPStrict,
    HandoffRejectReason,
    Uuid7,
)
from schemas.acp_payloads import Sha256
from schemas.base import Identifier, Result, Strings, Text, Timestamp

HandoffStatus = Literal[
    "draft",
    "proposed",
    "validating",
    "accepted",
    "rejected",
    "activated",
    "completed",
    "closed",
]
HandoffAction = Literal[
    "initiate",
    "propose",
    "accept",
    "reject",
    "activate",
    "complete",
    "close",
    "approve",
    "revoke",
    "get",
    "list",
    "history",
]

Said = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
"""Prose that says something: 1 to 20,000 characters, not only blanks."""

ARTIFACTS_MAX = 200

A = TypeVar("A", "HandoffArtifact", "HandoffGivenArtifact")


class HandoffTask(ACPStrict):
    """What is handed on. One criterion of success is the least (§7.2 rule 2)."""

    task_id: Identifier
    title: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"\S")]
    objective: Said
    success_criteria: Annotated[list[Said], Field(min_length=1, max_length=200)]
    deadline: Timestamp | None = None
    priority: ACPPriority
    external_refs: Annotated[list[ACPExternalRef], Field(max_length=200)] | None = None


class HandoffContext(ACPStrict):
    """What the receiver must know; the summary is mandatory (§7.2 rule 2)."""

    summary: Said
    constraints: Strings | None = None
    assumptions: Strings | None = None
    open_questions: Strings | None = None
    known_risks: Strings | None = None


Percent = Annotated[
    int | float,
    Field(ge=0, le=100),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100}),
]
"""A share, whole or not, which stays as it was written: a package is hashed."""


class HandoffWorkState(ACPStrict):
    """How far the work is; the next step is mandatory (§7.2 rule 2)."""

    status: Literal["not_started", "in_progress", "blocked", "review"]
    percent_complete: Percent | None = None
    completed_steps: Strings | None = None
    next_step: Said
    branch: Identifier | None = None
    worktree_path: Annotated[str, StringConstraints(max_length=4_096)] | None = None
    test_status: Literal["passing", "failing", "untested"] | None = None


class HandoffArtifact(ACPStrict):
    artifact_id: Identifier
    ref: ACPArtifactRef


class HandoffGivenArtifact(ACPStrict):
    """An artifact as a sender may name it (§6)."""

    artifact_id: Identifier
    ref: ACPGivenArtifactRef


def _check_once(artifacts: list[A]) -> list[A]:
    ids = [one.artifact_id for one in artifacts]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise ValueError(f"artifact_id '{twice}' is there twice")
    return artifacts


class HandoffProvenance(ACPStrict):
    origin_session: Identifier
    related_sessions: Strings | None = None
    decision_refs: Strings | None = None
    message_thread_refs: Strings | None = None
    handoff_chain: Annotated[list[Identifier], Field(max_length=1_000)] | None = None
    """The task's owners in order, the sender last (§7.2 rule 6). The node derives it; one that is
    given and not empty must be the same."""


class HandoffPolicy(ACPStrict):
    classification: Literal["internal", "restricted"]
    requires_human_approval: bool
    export_restrictions: Strings | None = None
    """Agents (by id, of any version) or domains of agent ids that may not get the package."""


class HandoffVerification(ACPStrict):
    schema_version: Literal["1.0.0"]
    package_hash: Sha256
    """SHA-256, hex, of the package's canonical JSON (RFC 8785) without this member."""


class _Package(ACPStrict):
    protocol: Literal["acp"] = "acp"
    version: Literal["1.0.0"] = "1.0.0"
    task: HandoffTask
    context: HandoffContext
    work_state: HandoffWorkState
    provenance: HandoffProvenance
    policy: HandoffPolicy


class ACPHandoffPackage(_Package):
    """The canonical handoff package (§7.1), as the node stores it whole and hashes it."""

    protocol: Literal["acp"]
    version: Literal["1.0.0"]
    handoff_id: Uuid7
    thread_id: Identifier
    artifacts: Annotated[
        list[HandoffArtifact], Field(max_length=ARTIFACTS_MAX), AfterValidator(_check_once)
    ]
    verification: HandoffVerification


class HandoffDraft(_Package):
    """A package as the sender gives it. The node fills in `handoff_id` (or takes the sender's, so
    that a repeated call is one handoff), `thread_id`, `provenance.handoff_chain` and
    `verification`. A `verification` that is given is checked over the rest as it was sent."""

    handoff_id: Uuid7 | None = None
    thread_id: Identifier | None = None
    artifacts: Annotated[
        list[HandoffGivenArtifact], Field(max_length=ARTIFACTS_MAX), AfterValidator(_check_once)
    ]
    verification: HandoffVerification | None = None


NEEDED: dict[HandoffAction, tuple[str, ...]] = {
    "initiate": ("to", "reason", "package"),
    "propose": ("handoff_id",),
    "accept": ("handoff_id",),
    "reject": ("handoff_id", "code", "detail"),
    "activate": ("handoff_id",),
    "complete": ("handoff_id", "summary"),
    "close": ("handoff_id",),
    "approve": ("handoff_id",),
    "revoke": ("handoff_id", "detail"),
    "get": ("handoff_id",),
    "list": (),
    "history": ("handoff_id",),
}
TAKEN: dict[HandoffAction, tuple[str, ...]] = {
    "initiate": ("team", "draft"),
    "propose": (),
    "accept": ("package_hash", "session_key", "node"),
    "reject": ("node",),
    "activate": ("node",),
    "complete": ("node",),
    "close": ("summary", "node"),
    "approve": ("detail", "node"),
    "revoke": ("node",),
    "get": ("node",),
    "list": ("role", "status", "task_id", "team", "cursor", "limit"),
    "history": ("node",),
}
"""What each action needs, and what it may have besides."""


class HandoffParams(ACPParams):
    """Params of `acp/handoff`; `action` says which of them are needed."""

    action: HandoffAction
    handoff_id: Uuid7 | None = None
    node: Identifier | None = None
    """The node that holds the handoff, where this one can't know it: a peer of it."""
    to: Identifier | None = None
    """The agent that is to take the work over."""
    reason: Said | None = None
    """Why the work is handed on."""
    package: HandoffDraft | None = None
    team: Identifier | None = None
    draft: bool | None = None
    """Only store and check it; `propose` sends it."""
    package_hash: Sha256 | None = None
    """What the receiver has read; another one is refused."""
    session_key: Identifier | None = None
    """The receiver's session, for the claim at workq."""
    code: HandoffRejectReason | None = None
    detail: Said | None = None
    summary: Said | None = None
    role: Literal["sender", "receiver", "coordinator"] | None = None
    """`coordinator`: those of no teamspace, whoever they are between, for who coordinates here; for
    a human's key the offers that stand."""
    status: HandoffStatus | None = None
    task_id: Identifier | None = None
    cursor: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        check_action(self, self.action, NEEDED[self.action], TAKEN[self.action])
        return self


def check_action(
    params: ACPParams, action: str, needed: tuple[str, ...], taken: tuple[str, ...]
) -> None:
    """Raise ValueError unless the params that are set are those which the action has."""
    given = {name for name in params.model_fields_set if getattr(params, name) is not None}
    missing = [name for name in needed if name not in given]
    if missing:
        raise ValueError(f"action '{action}' needs {', '.join(missing)}")
    other = sorted(given - {"action", *needed, *taken})
    if other:
        known = ", ".join((*needed, *taken)) or "nothing else"
        raise ValueError(f"action '{action}' takes no {', '.join(other)}; it takes {known}")


class ArtifactCheck(Result):
    """What came of checking an artifact: `verified`, or why it was not checked."""

    artifact_id: Identifier
    outcome: Literal[
        "verified", "unchecked", "missing_artifact", "hash_mismatch", "policy_violation"
    ]
    detail: str


WorkqStatus = Literal["none", "pending", "transferred", "manual"]


class HandoffSummary(Result):
    """A handoff without its package."""

    handoff_id: Identifier
    thread_id: Identifier
    task_id: Identifier
    from_agent: Identifier
    to_agent: Identifier
    title: str
    reason: Text
    status: HandoffStatus
    team: Identifier | None = None
    handed_on_from: Identifier | None = None
    """The handoff by which the sender had got the task."""
    waits_for: list[Literal["human_approval", "team_approval", "artifacts"]]
    workq: WorkqStatus
    """`manual`: ownership at workq must be moved by hand."""
    package_hash: Sha256
    initiated_at: Timestamp
    due_at: Timestamp | None = None
    """When it is escalated to the coordinator, unless it is completed before; of an offer, when it
    expires, unless it is accepted before."""
    escalated_at: Timestamp | None = None
    resolved_at: Timestamp | None = None
    resolution_notes: str | None = None


class HandoffElsewhere(Result):
    """A handoff that another node holds, and has offered to the caller; `get` asks it for more."""

    handoff_id: Identifier
    task_id: Identifier | None = None
    node: Identifier


class HandoffEvent(Result):
    """A line of a handoff's history, which only grows (§7.2 rule 7)."""

    seq: int
    step: str
    before: HandoffStatus | None = None
    after: HandoffStatus
    actor: Identifier
    role: Literal["sender", "receiver", "coordinator", "approver", "human", "node"]
    code: HandoffRejectReason | None = None
    detail: Text | None = None
    recorded_at: Timestamp


class HandoffResult(Result):
    """The answer to every action: the handoff that it is about, or those that were asked for."""

    handoff: HandoffSummary | None = None
    package: ACPHandoffPackage | None = None
    artifacts: list[ArtifactCheck] | None = None
    next_step: str | None = None
    """What the caller may do now, in words."""
    history: list[HandoffEvent] | None = None
    handoffs: list[HandoffSummary] | None = None
    elsewhere: list[HandoffElsewhere] | None = None
    """Beside `handoffs`, of one order and page with them; whatever `status` was asked for, which
    those nodes alone know."""
    next_cursor: Identifier | None = None
