"""The payload of each type of message (acp-canonical §5.1, §7.3).

Where the specification fixes no members, a payload has a `summary`, `details` of any shape, and
what its type needs.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from schemas.acp import ACPSupportedType, HandoffRejectReason, ShortText
from schemas.base import Identifier, JsonObject, WireObject

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Answer = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class ACPPayload(WireObject):
    """The members of every payload."""

    summary: ShortText
    details: JsonObject | None = None


class HandoffInitiatePayload(ACPPayload):
    """Refers to the package, which is larger than a payload may be."""

    handoff_id: Identifier
    task_id: Identifier | None = None
    package_hash: Sha256 | None = None


class HandoffAcceptPayload(ACPPayload):
    handoff_id: Identifier


class HandoffRejectPayload(ACPPayload):
    """A reason code for programs, and an explanation (§7.3)."""

    handoff_id: Identifier
    reason: HandoffRejectReason
    detail: ShortText


class HandoffCompletePayload(ACPPayload):
    handoff_id: Identifier


class StatusUpdatePayload(ACPPayload):
    percent_complete: Annotated[int, Field(ge=0, le=100)] | None = None
    next_step: ShortText | None = None


class StatusBlockedPayload(ACPPayload):
    """What the work waits for, and what would help it."""

    blocked_on: ShortText
    needs: ShortText | None = None


class StatusCompletePayload(ACPPayload):
    pass


class KnowledgePushPayload(ACPPayload):
    pass


class KnowledgeQueryPayload(ACPPayload):
    question: Answer


class KnowledgeResponsePayload(ACPPayload):
    """`query_id` is the id of the knowledge.query message."""

    query_id: Identifier
    answer: Answer


class SystemAckPayload(ACPPayload):
    message_id: Identifier


class SystemErrorPayload(ACPPayload):
    """`code` is for programs; `message_id` is the message concerned."""

    code: Identifier
    message_id: Identifier | None = None


PAYLOADS: dict[ACPSupportedType, type[ACPPayload]] = {
    "handoff.initiate": HandoffInitiatePayload,
    "handoff.accept": HandoffAcceptPayload,
    "handoff.reject": HandoffRejectPayload,
    "handoff.complete": HandoffCompletePayload,
    "status.update": StatusUpdatePayload,
    "status.blocked": StatusBlockedPayload,
    "status.complete": StatusCompletePayload,
    "knowledge.push": KnowledgePushPayload,
    "knowledge.query": KnowledgeQueryPayload,
    "knowledge.response": KnowledgeResponsePayload,
    "system.ack": SystemAckPayload,
    "system.error": SystemErrorPayload,
}
"""The model of every supported type's payload."""
