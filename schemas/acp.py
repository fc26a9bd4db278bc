"""ACP messages between agents (acp-canonical §4-§6): the envelope and its parts.

Members are snake_case, as in the specification, in params too.
"""

import re
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from schemas.base import SAFE_INTEGER, Count, Identifier, JsonObject, Model, check_time

PROTOCOL = "acp"
VERSION = "1.0.0"
PAYLOAD_MAX = 4096
"""The limit of a payload as JSON, in bytes (§2.9)."""
RECIPIENTS_MAX = 100
REFS_MAX = 50
CONTEXT_MAX = 16_384
"""The limit of a message's context as JSON, in bytes: it refers to large content by reference."""

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
"""The types of P2 (§5.2): reserved, so they are refused by name."""

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
Sequence = Annotated[int, Field(ge=1, le=SAFE_INTEGER)]

UUID7 = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
Uuid7 = Annotated[str, StringConstraints(pattern=UUID7)]
"""A UUIDv7 in lower case."""

# The published schema has the pattern only, so the pattern alone must refuse as much.
ENVELOPE_VERSION = r"^1\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})$"
ENVELOPE_TIME = (
    r"^[2-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|\+00:00)$"
)
EnvelopeVersion = Annotated[str, StringConstraints(pattern=ENVELOPE_VERSION)]
"""A version of ACP with the major number of this node (§3)."""
EnvelopeTime = Annotated[
    str,
    StringConstraints(pattern=ENVELOPE_TIME),
    AfterValidator(check_time),
    Field(json_schema_extra={"format": "date-time"}),
]
"""ISO 8601 UTC (§4), from the year 2000 on."""


class ACPStrict(Model):
    """An object of ACP: an unknown member, or one of another type, is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ACPPolicy(ACPStrict):
    """Who may see a message, how sensitive it is, and whether a human must approve it."""

    visibility: Literal["private", "team", "human-audit"]
    sensitivity: Literal["low", "moderate", "high"]
    human_gate: Literal["none", "required"]


class ACPGivenPolicy(ACPPolicy):
    """A message's policy as a caller gives it; missing members have their defaults."""

    visibility: Literal["private", "team", "human-audit"] = "private"
    sensitivity: Literal["low", "moderate", "high"] = "low"
    human_gate: Literal["none", "required"] = "none"

    def whole(self) -> ACPPolicy:
        return ACPPolicy(**self.model_dump())


class ACPExternalRef(ACPStrict):
    """Something outside the message that it refers to."""

    type: Literal["workq_item", "file", "branch", "pr", "url", "session", "ticket", "other"]
    value: ShortText
    description: ShortText | None = None
    version: Identifier | None = None


class ACPArtifactRef(ACPStrict):
    """Content too large for a payload: where it is, and its expected digest and size (§6)."""

    type: Literal["file", "branch", "pr", "url", "session", "workq_item"]
    path: ShortText
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    description: ShortText | None = None
    version: Identifier | None = None
    size_bytes: Count | None = None
    required: bool | None = None


# The published schema has both patterns, so they alone must refuse as much.
ABSOLUTE_PATH = r"^(/|\\\\|[A-Za-z]:[\\/])"
"""The beginning of an absolute path, on any system."""
TEAMSPACE_PATH = (
    r"^[\u0000-\u0020\u0085\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]*"
    r"[Tt][Ee][Aa][Mm][Ss][Pp][Aa][Cc][Ee]:"
)
"""A teamspace:// URI, in any case and after any blanks."""
_ABSOLUTE = re.compile(ABSOLUTE_PATH)
_TEAMSPACE = re.compile(TEAMSPACE_PATH)


class ACPGivenArtifactRef(ACPArtifactRef):
    """Content too large for a payload, as a caller gives it (§6): no teamspace:// URI, and a file
    by its absolute path. References that are stored already are not checked."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"type": {"const": "file"}}, "required": ["type"]},
            "then": {"properties": {"path": {"pattern": ABSOLUTE_PATH}}},
        }
    )

    path: Annotated[ShortText, Field(json_schema_extra={"not": {"pattern": TEAMSPACE_PATH}})]

    @model_validator(mode="after")
    def _check_path(self) -> Self:
        if _TEAMSPACE.match(self.path):
            raise ValueError(
                "path: teamspace:// is not supported; for a local artifact give type 'file' and "
                "the file's absolute path (acp-canonical §6)"
            )
        if self.type == "file" and not _ABSOLUTE.match(self.path):
            raise ValueError("path: a file needs an absolute path, such as /srv/work/report.md")
        return self


class _Refs(ACPStrict):
    external_refs: Annotated[list[ACPExternalRef], Field(max_length=REFS_MAX)] | None = None


class ACPGivenContext(_Refs):
    """A message's context as a caller gives it."""

    artifacts: Annotated[list[ACPGivenArtifactRef], Field(max_length=REFS_MAX)] | None = None


class ACPContext(_Refs):
    """A message's context as it is stored. The node sets `session_id`."""

    artifacts: Annotated[list[ACPArtifactRef], Field(max_length=REFS_MAX)] | None = None
    session_id: Identifier | None = None


class ACPEnvelopeContext(ACPGivenContext):
    """A message's context in an envelope. The node sets `session_id`."""

    session_id: Identifier | None = None


class ACPMessageEnvelope(ACPStrict):
    """A message (§4). Absent members are left out.

    A schema can't express that an integer is written without a fraction (3, never 3.0), that a time
    has a valid date (assert `format`), and that the payload as JSON has at most 4,096 bytes. A node
    also checks that the payload fits the schema of its type and that `*` is alone in `to`.
    """

    id: Uuid7
    protocol: Literal["acp"]
    version: EnvelopeVersion
    from_: Annotated[Identifier, Field(alias="from")]
    to: Annotated[list[Identifier], Field(min_length=1)]
    team: Identifier | None = None
    thread_id: Identifier | None = None
    reply_to: Uuid7 | None = None
    type: ACPMessageType
    topic: Identifier | None = None
    priority: ACPPriority
    status: ACPMessageStatus
    sequence: Sequence | None = None
    expires_at: EnvelopeTime | None = None
    payload: JsonObject
    policy: ACPPolicy
    context: ACPEnvelopeContext | None = None
    created_at: EnvelopeTime
    updated_at: EnvelopeTime | None = None


def check_type(type: str) -> None:
    """Raises PydanticCustomError for a type that is reserved (§5.2) or unknown."""
    if type in RESERVED:
        raise PydanticCustomError(
            "type_reserved",
            "{type} is reserved for a later phase of ACP and not supported yet",
            {"type": type},
        )
    if type not in SUPPORTED:
        raise PydanticCustomError(
            "schema_invalid",
            "must be one of: {types}",
            {"types": ", ".join(SUPPORTED)},
        )


def check_version(version: str) -> None:
    """Raises PydanticCustomError for a major version that this node does not support (§3)."""
    if version.split(".")[0] != VERSION.split(".")[0]:
        raise PydanticCustomError(
            "unsupported_version",
            "{version} has another major version than this node, which supports {supported}",
            {"version": version, "supported": VERSION},
        )


class ACPParams(Model):
    """Params of `acp/*`: a type error, an unknown member or a given sender is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_sender(cls, given: Any) -> Any:
        if isinstance(given, dict) and "from" in given:
            raise PydanticCustomError(
                "sender_supplied",
                "from must be omitted; the sender is the caller",
            )
        return given
