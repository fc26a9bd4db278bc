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
from schemas.handoff_evidence import HandoffEvidence, HandoffTestEvidence, check_evidence

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
"""Prose: 1 to 20,000 characters, not only blanks."""

ARTIFACTS_MAX = 200

A = TypeVar("A", "HandoffArtifact", "HandoffGivenArtifact")


class HandoffTask(ACPStrict):
    """The task. At least one success criterion is required (§7.2 rule 2)."""

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
"""An integer or a decimal, kept as written because the package is hashed."""


class HandoffWorkState(ACPStrict):
    """The progress of the work; the next step is mandatory (§7.2 rule 2)."""

    status: Literal["not_started", "in_progress", "blocked", "review"]
    percent_complete: Percent | None = None
    completed_steps: Strings | None = None
    next_step: Said
    branch: Identifier | None = None
    worktree_path: Annotated[str, StringConstraints(max_length=4_096)] | None = None
    test_status: Literal["passing", "failing", "untested"] | None = None
    test_evidence: HandoffTestEvidence | None = None
    """What shows that tests pass. Not in the specification: without it `passing` is word."""

    @model_validator(mode="after")
    def _fits_its_evidence(self) -> Self:
        check_evidence(self.test_status, self.test_evidence)
        return self


class HandoffArtifact(ACPStrict):
    artifact_id: Identifier
    ref: ACPArtifactRef


class HandoffGivenArtifact(ACPStrict):
    """An artifact as a sender gives it (§6)."""

    artifact_id: Identifier
    ref: ACPGivenArtifactRef


def _check_once(artifacts: list[A]) -> list[A]:
    ids = [artifact.artifact_id for artifact in artifacts]
    duplicate = next((artifact_id for artifact_id in ids if ids.count(artifact_id) > 1), None)
    if duplicate is not None:
        raise ValueError(f"artifact_id '{duplicate}' occurs twice")
    return artifacts


class HandoffProvenance(ACPStrict):
    origin_session: Identifier
    related_sessions: Strings | None = None
    decision_refs: Strings | None = None
    message_thread_refs: Strings | None = None
    handoff_chain: Annotated[list[Identifier], Field(max_length=1_000)] | None = None
    """The task's owners in order, the sender last (§7.2 rule 6). The node derives it; a given chain
    must be empty or the same."""


class HandoffPolicy(ACPStrict):
    classification: Literal["internal", "restricted"]
    requires_human_approval: bool
    export_restrictions: Strings | None = None
    """Agents (by id, any version) or domains of agent ids that must not get the package."""


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
    """The canonical handoff package (§7.1), which the node stores and hashes."""

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
    that a repeated call makes one handoff), `thread_id`, `provenance.handoff_chain` and
    `verification`. A given `verification` is checked against the rest as it was sent."""

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
"""The required and the optional params of each action."""


class HandoffParams(ACPParams):
    """Params of `acp/handoff`; `action` says which of them are needed."""

    action: HandoffAction
    handoff_id: Uuid7 | None = None
    node: Identifier | None = None
    """The peer that has the handoff, if this node can't know it."""
    to: Identifier | None = None
    """The agent that shall take over the work."""
    reason: Said | None = None
    """The reason for the handoff."""
    package: HandoffDraft | None = None
    team: Identifier | None = None
    draft: bool | None = None
    """Only check and store it; `propose` sends it."""
    package_hash: Sha256 | None = None
    """The digest of the package that the receiver has read; a different one is refused."""
    session_key: Identifier | None = None
    """The receiver's session, for the claim at workq."""
    code: HandoffRejectReason | None = None
    detail: Said | None = None
    summary: Said | None = None
    role: Literal["sender", "receiver", "coordinator"] | None = None
    """`coordinator`: all handoffs without a teamspace, for the coordinator of this node; for a
    human's key the open offers."""
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
    """Raises ValueError for missing params of the action, and for params of other actions."""
    given = {name for name in params.model_fields_set if getattr(params, name) is not None}
    missing = [name for name in needed if name not in given]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ValueError(f"{', '.join(missing)} {verb} required for action '{action}'")
    other = sorted(given - {"action", *needed, *taken})
    if other:
        allowed = ", ".join((*needed, *taken)) or "none"
        raise ValueError(
            f"action '{action}' does not accept {', '.join(other)}; allowed: {allowed}"
        )


class ArtifactCheck(Result):
    """The result of checking an artifact: `verified`, or why it was not checked."""

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
    """The handoff by which the sender got the task."""
    waits_for: list[Literal["human_approval", "team_approval", "artifacts"]]
    workq: WorkqStatus
    """`manual`: ownership at workq must be changed by hand."""
    package_hash: Sha256
    initiated_at: Timestamp
    due_at: Timestamp | None = None
    """When it is escalated to the coordinator unless completed; for an offer, when it expires
    unless accepted."""
    escalated_at: Timestamp | None = None
    resolved_at: Timestamp | None = None
    resolution_notes: str | None = None


class HandoffElsewhere(Result):
    """A handoff that another node stores and has offered to the caller; `get` asks it for more."""

    handoff_id: Identifier
    task_id: Identifier | None = None
    node: Identifier


class HandoffEvent(Result):
    """An event of a handoff's history, which is append-only (§7.2 rule 7)."""

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
    """The result of every action: the handoff concerned, or the handoffs listed."""

    handoff: HandoffSummary | None = None
    package: ACPHandoffPackage | None = None
    artifacts: list[ArtifactCheck] | None = None
    evidence: HandoffEvidence | None = None
    """With `package`, if that says that tests pass."""
    next_step: str | None = None
    """What the caller may do next, as text."""
    history: list[HandoffEvent] | None = None
    handoffs: list[HandoffSummary] | None = None
    elsewhere: list[HandoffElsewhere] | None = None
    """In the same order and on the same page as `handoffs`, whatever `status` was asked for: only
    those nodes know the status."""
    next_cursor: Identifier | None = None
