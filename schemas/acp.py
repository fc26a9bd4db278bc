"""ACP messages between agents (acp-canonical §4-§6): the envelope and what it is made of.

Members are snake_case, as the specification names them, in params too.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from schemas.base import Identifier, JsonObject, Timestamp, WireObject

PROTOCOL = "acp"
VERSION = "1.0.0"
PAYLOAD_MAX = 4096
"""Bytes of the payload as JSON, at most (§2.9)."""
RECIPIENTS_MAX = 100
REFS_MAX = 50
CONTEXT_MAX = 16_384
"""Bytes of a message's context as JSON: it points to what is large, and holds none of it."""

ACPPriority = Literal["low", "normal", "high", "critical"]
ACPMessageStatus = Literal["pending", "delivered", "read", "expired", "failed"]

ACPSupportedType = Literal[
    "handoff.initiate",
    "handoff.accept",
    "handoff.reject",
    "handoff.complete",
    "status.update",
    "status.blocked",
    "status.complete",
    "knowledge.push",
    "knowledge.query",
    "knowledge.response",
    "system.ack",
    "system.error",
]
"""The types of P1 (§5.1)."""

ACPReservedType = Literal[
    "task.offer",
    "task.accept",
    "task.decline",
    "task.counter",
    "position.state",
    "position.challenge",
    "position.concede",
    "position.escalate",
    "team.join",
    "team.leave",
    "team.role_change",
    "team.artifact_update",
]
"""The types of P2 (§5.2): they have a name, and are refused by it."""

ACPMessageType = ACPSupportedType | ACPReservedType

SUPPORTED: tuple[str, ...] = get_args(ACPSupportedType)
RESERVED: tuple[str, ...] = get_args(ACPReservedType)

HandoffRejectReason = Literal[
    "missing_artifact",
    "hash_mismatch",
    "schema_invalid",
    "policy_violation",
    "capacity_unavailable",
    "capability_mismatch",
    "success_criteria_ambiguous",
    "ownership_conflict",
    "timeout_risk",
    "other",
]
"""§7.3."""

ShortText = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
SemVer = Annotated[
    str, StringConstraints(pattern=r"^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$")
]


class ACPPolicy(WireObject):
    """Who may see a message, how sensitive it is, and whether a human lets it through."""

    visibility: Literal["private", "team", "human-audit"] = "private"
    sensitivity: Literal["low", "moderate", "high"] = "low"
    human_gate: Literal["none", "required"] = "none"


class ACPExternalRef(WireObject):
    """Something outside that a message is about."""

    type: Literal["workq_item", "file", "branch", "pr", "url", "session", "ticket", "other"]
    value: ShortText
    description: ShortText | None = None
    version: Identifier | None = None


class ACPArtifactRef(WireObject):
    """What is too large for a payload: where it is, and what it should be (§6)."""

    type: Literal["file", "branch", "pr", "url", "session", "workq_item"]
    path: ShortText
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    description: ShortText | None = None
    version: Identifier | None = None
    size_bytes: Annotated[int, Field(ge=0)] | None = None
    required: bool | None = None


class ACPGivenContext(WireObject):
    """What a caller may say about a message's context."""

    external_refs: Annotated[list[ACPExternalRef], Field(max_length=REFS_MAX)] | None = None
    artifacts: Annotated[list[ACPArtifactRef], Field(max_length=REFS_MAX)] | None = None


class ACPContext(ACPGivenContext):
    """A message's context. `session_id` is the node's to say."""

    session_id: Identifier | None = None


class ACPMessageEnvelope(WireObject):
    """A message (§4). Absent members are left out."""

    id: Identifier
    protocol: Literal["acp"]
    version: SemVer
    from_: Annotated[Identifier, Field(alias="from")]
    to: Annotated[list[Identifier], Field(min_length=1)]
    team: Identifier | None = None
    thread_id: Identifier | None = None
    reply_to: Identifier | None = None
    type: ACPMessageType
    topic: Identifier | None = None
    priority: ACPPriority
    status: ACPMessageStatus
    sequence: Annotated[int, Field(ge=1)] | None = None
    expires_at: Timestamp | None = None
    payload: JsonObject
    policy: ACPPolicy
    context: ACPContext | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None


def check_type(type: str) -> None:
    """Raises PydanticCustomError for a type that is reserved (§5.2) or that there is not."""
    if type in RESERVED:
        raise PydanticCustomError(
            "type_reserved",
            "{type} is reserved for a later phase of ACP and not supported yet",
            {"type": type},
        )
    if type not in SUPPORTED:
        raise PydanticCustomError(
            "schema_invalid",
            "is none of the types that there are: {types}",
            {"types": ", ".join(SUPPORTED)},
        )


def check_version(version: str) -> None:
    """Raises PydanticCustomError for a major version that this node does not speak (§3)."""
    if version.split(".")[0] != VERSION.split(".")[0]:
        raise PydanticCustomError(
            "unsupported_version",
            "{version} is of another major version; this node speaks {spoken}",
            {"version": version, "spoken": VERSION},
        )


class ACPParams(BaseModel):
    """Params of `acp/*`: a type error, an unknown member and a supplied sender are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_sender(cls, given: Any) -> Any:
        if isinstance(given, dict) and "from" in given:
            raise PydanticCustomError(
                "sender_supplied",
                "may not say from: the sender is the caller, as its key says; leave it out",
            )
        return given
