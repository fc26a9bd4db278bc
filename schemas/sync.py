"""Sync methods, peer to peer (CACP 2.0, Sync Methods). Unknown members are ignored here."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, FailFast, Field, model_validator
from pydantic.alias_generators import to_camel

from schemas.base import (
    LIST_MAX,
    Endpoint,
    Identifier,
    JsonObject,
    Model,
    Ordinal,
    Result,
    Stamp,
    Strings,
    Text,
    Timestamp,
)
from schemas.context import ContextType
from schemas.contract import ContractStatus, ContractType, ImplementationStatus
from schemas.mesh import MeshVerdict, PeerState, ProjectRegister, Signature, SignedFact
from schemas.project import ProjectStatus

ENTITIES_MAX = 5_000
"""The limit of contracts and of packets in one whole project; the others are sent one by one."""


class SyncParams(Model):
    """Params of a sync method: `source_agent` is spelled so in the spec's text."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    source_agent: Annotated[Identifier, Field(alias="source_agent")]
    keys: dict[str, str] = {}
    """From mesh peers: public keys of the nodes whose signatures are included."""


class PeerObject(Model):
    """An object as a peer of any kind sends it: null and "" mean absent, unknown members are
    ignored."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _drop_absent(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: member for name, member in value.items() if member not in (None, "")}
        return value


class PeerRepo(PeerObject):
    repo_id: Identifier
    name: Identifier
    role: Identifier = "shared"
    language: Identifier = "unknown"
    agent_id: Annotated[
        Identifier | None, Field(validation_alias=AliasChoices("agent_id", "assigned_agent"))
    ] = None
    agent_endpoint: Endpoint | None = None
    relevant_paths: Strings | None = None
    url: Text | None = None


class PeerImplementation(PeerObject):
    repo_id: Identifier
    agent_id: Identifier | None = None
    status: ImplementationStatus
    plan: Text | None = None
    files: Strings | None = None
    notes: Text | None = None
    test_endpoint: Text | None = None
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None


class PeerContract(PeerObject):
    contract_id: Identifier
    type: ContractType
    name: Identifier
    version: Ordinal
    status: ContractStatus
    content: JsonObject
    proposed_by: Identifier | None = None
    implementations: Annotated[list[PeerImplementation], Field(max_length=LIST_MAX)] = []
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class PeerPacket(PeerObject):
    packet_id: Identifier
    from_repo: Identifier
    from_agent: Identifier
    timestamp: Timestamp
    type: ContextType
    content: JsonObject
    related_contracts: Strings | None = None
    reply_to: Identifier | None = None


class PeerProject(PeerObject):
    project_id: Identifier
    name: Identifier
    objective: Text = ""
    status: ProjectStatus = "planning"
    repos: Annotated[list[PeerRepo], Field(max_length=LIST_MAX)] = []
    contracts: Annotated[list[PeerContract], Field(max_length=ENTITIES_MAX)] = []
    context_history: Annotated[list[PeerPacket], Field(max_length=ENTITIES_MAX)] = []
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class ProjectSyncParams(SyncParams):
    project: PeerProject
    registers: ProjectRegister | None = None

    @property
    def project_id(self) -> str:
        return self.project.project_id


class ContractSyncParams(SyncParams):
    project_id: Identifier
    contract: PeerContract
    facts: Annotated[list[SignedFact] | None, FailFast(), Field(max_length=100_000)] = None
    created_at: Stamp | None = None
    header_signature: Signature | None = None
    """Of the contract's type and name and of `created_at`."""


class ReceiptSet(PeerObject):
    """The receipts of a contract, or some of them."""

    contract_id: Identifier
    facts: Annotated[list[SignedFact], FailFast(), Field(max_length=100_000)]


class ReceiptSyncParams(SyncParams):
    project_id: Identifier
    receipts: ReceiptSet


class ContextSyncParams(SyncParams):
    project_id: Identifier
    packet: PeerPacket
    signature: Signature | None = None


class RepoSyncParams(SyncParams):
    project_id: Identifier
    repo: PeerRepo


class SyncResult(Result):
    """`created` and `updated` changed something here; `skipped` says why nothing had to."""

    status: Literal["created", "updated", "skipped"]
    reason: str | None = None
    skipped: list[dict[str, Any]] | None = None


class AnnounceParams(Model):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    agent_id: Identifier
    endpoint: Endpoint
    repo_name: Identifier | None = None


class AnnounceResult(Result):
    status: Literal["acknowledged"]
    my_agent_id: Identifier
    my_repo_name: Identifier


class RegisterPeerResult(Result):
    status: Literal["registered"]
    agent_id: Identifier
    repo_name: Identifier
    peer_count: int


class PeerSummary(Result):
    agent_id: Identifier
    endpoint: Endpoint
    repo_name: Identifier | None = None
    trust: Literal["verified", "unkeyed"]
    registered_at: Timestamp
    last_seen: Timestamp
    kind: Literal["mesh", "foreign"]
    """Whether it is a node of the mesh, or a CACP 2.0 peer with other software."""
    sync: PeerState | None = None
    """The state of the exchange; absent while there is none."""
    clock_ahead_seconds: int | None = None
    """How far its clock is ahead of the time; absent where it was not measured."""
    equivocations: int | None = None
    """How often it has contradicted itself; absent for a peer that never has."""


class ListPeersResult(Result):
    peers: list[PeerSummary]
    mesh: MeshVerdict
