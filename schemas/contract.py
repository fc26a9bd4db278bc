"""Contract, its versions and implementations (CACP 2.0, Data Types; Contract Methods)."""

from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, Field

from schemas.base import (
    LIST_MAX,
    Commit,
    Identifier,
    JsonObject,
    Ordinal,
    Params,
    Result,
    Strings,
    Text,
    Timestamp,
    WireObject,
)
from schemas.comparison import ReadContent, VersionComparison
from schemas.dialect import DialectName, Verdict
from schemas.verification import PartyRole, VerificationPolicy

ContractType = Literal[
    "api_endpoint", "event_schema", "data_model", "config_spec", "rpc_interface", "custom"
]
ContractStatus = Literal["proposed", "negotiating", "agreed", "implemented", "verified"]
UNSETTLED: Final = ("proposed", "negotiating")
"""The states of a contract that is not agreed."""
ImplementationStatus = Literal["pending", "in_progress", "complete", "needs_revision"]
ResponseAction = Literal["agree", "request_change", "reject"]
ResponseOutcome = Literal["agreed", "change_requested", "rejected", "proposed", "negotiating"]
"""The outcome of a response. A contract that is not agreed by all yet stays proposed or
negotiating."""
VerificationResult = Literal["success", "failure", "partial"]
AgreementPolicy = Literal["any", "all"]
TimelineStep = Literal[
    "proposed",
    "updated",
    "change_requested",
    "rejected",
    "agreed",
    "started",
    "needs_revision",
    "completed",
    "receipt_passed",
    "receipt_failed",
    "failed",
    "partly_verified",
    "verified",
]


class Implementation(WireObject):
    """One party's work on the current version of a contract."""

    repo_id: Identifier
    agent_id: Identifier
    status: ImplementationStatus
    plan: Text | None = None
    files: Strings = []
    notes: Text | None = None
    test_endpoint: Text | None = None
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    commit: Commit | None = None
    """What was declared complete."""


class ContractVersion(WireObject):
    """A version before the current one."""

    version: Ordinal
    content: JsonObject
    proposed_by: Identifier
    timestamp: Timestamp
    change_notes: Text | None = None


class Contract(WireObject):
    """An interface agreement. `history` holds the versions before the current one."""

    contract_id: Identifier
    type: ContractType
    name: Identifier
    version: Ordinal
    status: ContractStatus
    content: JsonObject
    proposed_by: Identifier
    implementations: list[Implementation] = []
    history: list[ContractVersion] = []
    created_at: Timestamp
    updated_at: Timestamp


Roles = Annotated[dict[Identifier, PartyRole], Field(min_length=1, max_length=LIST_MAX)]
"""The roles of parties, by the name or id of their repo. Of the others one provides if none named
here does, by the roles of their repos; the rest consume."""


class ContractParams(Params):
    project_id: Identifier
    contract_id: Identifier


class ProposeParams(Params):
    project_id: Identifier
    type: ContractType
    name: Identifier
    content: JsonObject
    parties: Annotated[list[Identifier], Field(min_length=1, max_length=LIST_MAX)] | None = None
    """Names or ids of the repos that must agree and implement; all of the project's by default."""
    roles: Roles | None = None
    dialect: DialectName | None = None
    """What the content is written in. It is checked then, and refused if it is invalid. Without it
    the dialect is recognised, and nothing is refused."""


class ProposeResult(ReadContent):
    contract_id: Identifier
    version: int
    status: ContractStatus
    roles: dict[Identifier, PartyRole]
    """The role that each party has, by the repo's name."""


class RespondParams(ContractParams):
    action: ResponseAction
    comment: Text | None = None
    suggested_change: Any = None
    version: Ordinal | None = None
    """The version that the caller read; if it is not current any more, the response is refused."""


class RespondResult(Result):
    status: ResponseOutcome
    version: int
    contract_status: ContractStatus
    contract_version: int


class UpdateContractParams(ContractParams):
    content: JsonObject
    change_note: Annotated[
        Text | None, Field(validation_alias=AliasChoices("changeNote", "changeNotes"))
    ] = None
    version: Ordinal | None = None
    """The version that the caller read; if it is not current any more, the update is refused."""
    parties: Annotated[list[Identifier], Field(min_length=1, max_length=LIST_MAX)] | None = None
    roles: Roles | None = None
    """As for cacp/contract/propose; those of the version before by default."""
    dialect: DialectName | None = None
    """As for cacp/contract/propose; that of the version before by default."""
    dry_run: bool = False
    """Only answer what the update would do."""


class UpdateContractResult(ReadContent):
    contract_id: Identifier
    version: int
    status: ContractStatus
    dry_run: Literal[True] | None = None
    """Present if nothing was written."""
    comparison: VersionComparison
    roles: dict[Identifier, PartyRole]
    """The role that each party has, by the repo's name."""


class GetContractParams(ContractParams):
    include_history: bool = False


class ListContractsParams(Params):
    project_id: Identifier
    status: ContractStatus | None = None
    type: ContractType | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 1_000
    cursor: Identifier | None = None


class ContractSummary(Result):
    contract_id: Identifier
    type: ContractType
    name: Identifier
    version: int
    status: ContractStatus
    proposed_by: Identifier
    proposed_by_name: Identifier | None = None
    """The repo's name; absent while the repo is unknown here."""


class ListContractsResult(Result):
    contracts: list[ContractSummary]
    next_cursor: Identifier | None = None


class ConflictingVersion(Result):
    """A concurrent version that lost against the current one (design §7)."""

    contract_id: Identifier
    version: int
    content: JsonObject
    proposed_by: Identifier
    timestamp: Timestamp
    change_notes: Text | None = None
    parties: list[Identifier]
    """repo_ids that it would have bound. Of versions with equal content the earliest one wins,
    whichever repos it binds."""
    current_version: int
    current_content: JsonObject
    current_parties: list[Identifier]


class ListConflictsParams(Params):
    project_id: Identifier
    contract_id: Identifier | None = None


class ListConflictsResult(Result):
    conflicts: list[ConflictingVersion]


class TimelineEntry(Result):
    """One event of a contract: who did what to which version, and why."""

    timestamp: Timestamp
    step: TimelineStep
    version: int
    round: int | None = None
    """The round of implementation; absent for steps that belong to none."""
    repo_id: Identifier
    name: Identifier | None = None
    """The repo's name; absent while the repo is unknown here."""
    agent_id: Identifier
    note: Text | None = None
    effect: Verdict | None = None
    """Of an update: what it means for consumers as built to the version before."""
    details: Any = None


class TimelineResult(Result):
    contract_id: Identifier
    agreement_policy: AgreementPolicy
    verification_policy: VerificationPolicy
    parties: list[Identifier]
    """repo_ids that are bound by the current version."""
    timeline: list[TimelineEntry]
