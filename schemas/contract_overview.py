"""cacp/contract/overview: a contract with everything that its reader needs for the next step."""

from typing import Any, Literal

from schemas.attention import AttentionKind, AttentionStep, Urgency
from schemas.base import Count, Identifier, JsonObject, Result, Text, Timestamp
from schemas.comparison import ContentComparison
from schemas.contract import (
    AgreementPolicy,
    Contract,
    ContractParams,
    ResponseAction,
    VerificationResult,
)
from schemas.receipt_calls import ListedReceipt, UnprovenSide
from schemas.verification import PartyRole, VerificationPolicy


class OverviewParams(ContractParams):
    include_history: bool = False


class OverviewParty(Result):
    """A repo that the current version binds. `name`, `role` and `agent_id` are absent while unknown
    here. `side` follows from the repos' roles where the version doesn't say it."""

    repo_id: Identifier
    name: Identifier | None = None
    role: Identifier | None = None
    side: PartyRole
    agent_id: Identifier | None = None


class ContractResponse(Result):
    """A repo's latest response to the current version. `name` is the repo's."""

    repo_id: Identifier
    name: Identifier | None = None
    agent_id: Identifier
    action: ResponseAction
    comment: Text | None = None
    suggested_change: Any = None
    timestamp: Timestamp


class ContractVerification(Result):
    """A repo's verification of a round of the current version."""

    repo_id: Identifier
    name: Identifier | None = None
    agent_id: Identifier
    round: int
    result: VerificationResult
    notes: Text | None = None
    failure_details: JsonObject | None = None
    timestamp: Timestamp


class ChangesSince(ContentComparison):
    """What the current version changes of an earlier one: of the last to which the caller's repo
    agreed or that it wrote (`agreed`), else of the one before. Lines of text, old values first;
    `more` counts those left out. Beside them whom the changes break."""

    version: int
    basis: Literal["agreed", "previous"]
    lines: list[str]
    more: Count


class OwnStep(Result):
    """A step of the caller that the contract waits for: an item of cacp/attention/list, without its
    detail."""

    id: Identifier
    kind: AttentionKind
    urgency: Urgency
    since: Timestamp
    summary: Text
    next: list[AttentionStep]


class AwaitedStep(Result):
    """A step that the contract waits for, and the repo that must take it. `id` is the same in
    cacp/attention/list."""

    id: Identifier
    kind: AttentionKind
    since: Timestamp
    repo_id: Identifier
    name: Identifier | None = None


class ContractOverview(Result):
    """`own_steps` are the caller's, `awaited_steps` those of all repos. `changes_since` is absent
    if the caller's repo has agreed to the current version or wrote it. `conflicts`: the number of
    versions that lost a race."""

    contract: Contract
    project_name: Identifier
    change_note: Text | None = None
    agreement_policy: AgreementPolicy
    verification_policy: VerificationPolicy
    parties: list[OverviewParty]
    round: int
    own_steps: list[OwnStep]
    awaited_steps: list[AwaitedStep]
    responses: list[ContractResponse]
    verifications: list[ContractVerification]
    """By word."""
    receipts: list[ListedReceipt]
    """Proof, or what was meant to be."""
    unproven: list[UnprovenSide]
    changes_since: ChangesSince | None = None
    conflicts: int
