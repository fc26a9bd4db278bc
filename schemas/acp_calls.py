"""Params and results of `acp/*` (acp-canonical §11)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from schemas.acp import (
    RECIPIENTS_MAX,
    VERSION,
    ACPGivenContext,
    ACPGivenPolicy,
    ACPMessageEnvelope,
    ACPMessageStatus,
    ACPParams,
    ACPPriority,
    SemVer,
    Sequence,
    ShortText,
    check_type,
    check_version,
)
from schemas.base import Count, Endpoint, Identifier, JsonObject, Result, Timestamp
from schemas.handoff import HandoffSummary

Checked = Annotated[Identifier, AfterValidator(lambda value: (check_type(value), value)[1])]
"""A message type that this node supports."""
Spoken = Annotated[SemVer, AfterValidator(lambda value: (check_version(value), value)[1])]
"""A version whose major number this node supports."""
Recipients = Annotated[list[Identifier], Field(min_length=1, max_length=RECIPIENTS_MAX)]
GivenIds = Annotated[list[str], Field(min_length=1, max_length=1_000)]
"""Ids as a caller gives them: each string has its own outcome, also if it is malformed."""
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""The sender's own id of a message: a repeated call gets the response of the first one."""
Held = Literal["gate", "quarantine"]
Channel = Literal["session", "inbox", "channel", "wake"]
CapabilityState = Literal["available", "disabled", "unavailable"]


class Capabilities(Result):
    """The state of each channel on this node (§10.1, §10.4)."""

    inbox: CapabilityState
    session: CapabilityState
    channel: CapabilityState
    wake: CapabilityState


class Receipt(Result):
    """The delivery status of a message for one recipient. `error` says why it failed."""

    recipient: Identifier
    status: ACPMessageStatus
    delivered_at: Timestamp | None = None
    read_at: Timestamp | None = None
    error: str | None = None


class Common(ACPParams):
    """The members that any message may have."""

    protocol: Literal["acp"] = "acp"
    version: Spoken = VERSION
    topic: Identifier | None = None
    priority: ACPPriority = "normal"
    sequence: Sequence | None = None
    expires_at: Timestamp | None = None
    policy: ACPGivenPolicy | None = None
    context: ACPGivenContext | None = None
    client_id: ClientId | None = None


class SendParams(Common):
    to: Recipients
    type: Checked
    payload: JsonObject
    team: Identifier | None = None
    thread_id: Identifier | None = None
    reply_to: Identifier | None = None


class ACPRespondParams(Common):
    message_id: Identifier
    type: Checked
    payload: JsonObject
    to_all: bool = False
    """To all recipients of the message, besides its sender."""


class StatusParams(Common):
    to: Recipients
    state: Literal["update", "blocked", "complete"]
    summary: ShortText
    details: JsonObject | None = None
    blocked_on: ShortText | None = None
    needs: ShortText | None = None
    percent_complete: Annotated[int, Field(ge=0, le=100)] | None = None
    next_step: ShortText | None = None
    team: Identifier | None = None
    thread_id: Identifier | None = None

    @model_validator(mode="after")
    def _says_by_what(self) -> Self:
        if self.state == "blocked" and self.blocked_on is None:
            raise ValueError("blocked_on is required for state 'blocked'")
        return self


class SendResult(Result):
    """`duplicate`: this client id was sent before, and this is the response of that call."""

    message: ACPMessageEnvelope
    receipts: list[Receipt]
    duplicate: bool
    held: Held | None = None
    capabilities: Capabilities


class QueryParams(ACPParams):
    message_id: Identifier | None = None
    agent: Identifier | None = None
    thread_id: Identifier | None = None
    type: Checked | None = None
    status: ACPMessageStatus | None = None
    topic: Identifier | None = None
    team: Identifier | None = None
    held: Held | None = None
    urgent_only: bool = False
    since: Timestamp | None = None
    until: Timestamp | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Identifier | None = None


class Found(Result):
    """`vouched_by`: the node that vouches for the sender; absent for one authenticated here."""

    message: ACPMessageEnvelope
    receipts: list[Receipt]
    held: Held | None = None
    vouched_by: Identifier | None = None


class QueryResult(Result):
    """Newest first."""

    messages: list[Found]
    next_cursor: Identifier | None = None


class InboxParams(ACPParams):
    show: Literal["unread", "all"] = "unread"
    cursor: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    wait: Annotated[float, Field(ge=0, le=60)] = 0
    ack: GivenIds | None = None
    urgent_only: bool = False
    """Only messages of high or critical priority."""
    format: Literal["json", "markdown"] = "json"


class Delivery(Result):
    """The position of a message in the inbox. `vouched_by`: the node that vouches for its sender;
    absent for one authenticated here."""

    message_id: Identifier
    seq: int
    status: ACPMessageStatus
    vouched_by: Identifier | None = None


class Counts(Result):
    """`received` counts all messages that ever came into the inbox: the sum of the others."""

    received: int
    unread: int
    read: int
    expired: int
    failed: int


class Acked(Result):
    """The outcome for one id. `unknown`: the caller has received no such message."""

    message_id: str
    outcome: Literal["read", "already", "expired", "failed", "unknown"]


class InboxResult(Result):
    """`restarted`: the cursor belonged to a database that no longer exists, so reading began anew.
    `acked` has each id of `ack`."""

    address: Identifier
    messages: list[ACPMessageEnvelope]
    deliveries: list[Delivery]
    cursor: Identifier
    high_water: int
    counts: Counts
    more: bool
    restarted: bool
    acked: list[Acked] = []
    text: str | None = None
    capabilities: Capabilities


class AckParams(ACPParams):
    message_ids: GivenIds


class AckResult(Result):
    acked: list[Acked]


class ApproveParams(ACPParams):
    message_id: Identifier
    """Or the id of a handoff that requires human approval."""
    decision: Literal["approve", "refuse"] = "approve"
    comment: ShortText | None = None


class ApproveResult(Result):
    """The message or the handoff that was decided on."""

    message: ACPMessageEnvelope | None = None
    handoff: HandoffSummary | None = None
    receipts: list[Receipt]
    outcome: Literal["approved", "refused"]


class ApprovalsParams(ACPParams):
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Identifier | None = None


class Approval(Result):
    """A message or handoff that waits for a human. `subject` is a message's topic, else its
    summary, or a handoff's title; `since` is when it was sent."""

    id: Identifier
    kind: Literal["message", "handoff"]
    from_: Annotated[Identifier, Field(alias="from")]
    to: list[Identifier]
    type: Identifier
    priority: ACPPriority
    subject: str
    since: Timestamp
    expires_at: Timestamp | None = None


class ApprovalsResult(Result):
    """Oldest first."""

    waiting: list[Approval]
    next_cursor: Identifier | None = None


class DeadLettersParams(ACPParams):
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Count = 0


class DeadLetter(Result):
    """`channel`: where delivery failed. Unless that is the inbox, the inbox has the message."""

    message: ACPMessageEnvelope
    receipt: Receipt
    channel: Channel


class DeadLettersResult(Result):
    """Oldest first."""

    letters: list[DeadLetter]
    next_cursor: int | None = None


class ReplayParams(ACPParams):
    message_id: Identifier
    expires_at: Timestamp | None = None


class ClaimParams(ACPParams):
    """`urgent`: only messages of high or critical priority. `again`: also those that this session
    has seen before, for one that has lost them. `size`: the limit of `text` in characters; a
    message that exceeds it alone is only named."""

    session_id: Identifier
    urgent: bool = False
    again: bool = False
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    size: Annotated[int, Field(ge=2_000, le=1_000_000)] = 1_000_000
    format: Literal["json", "markdown"] = "json"


class ClaimResult(Result):
    """`more`: there are further messages to claim now."""

    address: Identifier
    messages: list[ACPMessageEnvelope]
    counts: Counts
    more: bool
    text: str | None = None
    capabilities: Capabilities


class SubscribeParams(ACPParams):
    url: Endpoint


class SubscribeResult(Result):
    """`secret` is shown only once."""

    url: str
    secret: str
    created_at: Timestamp
    capabilities: Capabilities


class UnsubscribeParams(ACPParams):
    pass


class UnsubscribeResult(Result):
    """`removed`: whether there was a subscription."""

    removed: bool


class ChannelsParams(ACPParams):
    pass


class ChannelState(Result):
    """The state of a channel for the caller. `configured`: there is a webhook, a command or a
    poller. `waiting` messages have not been pushed yet; for `failed` ones all attempts failed.
    After many failures no attempt is made before `paused_until`."""

    channel: Channel
    state: CapabilityState
    configured: bool
    url: str | None = None
    waiting: int
    failed: int
    paused_until: Timestamp | None = None


class ChannelsResult(Result):
    address: Identifier
    channels: list[ChannelState]
    capabilities: Capabilities
