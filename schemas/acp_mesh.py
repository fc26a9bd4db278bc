"""What mesh nodes say to each other about mail (design §6, §7; acp-canonical §12)."""

from typing import Annotated

from pydantic import Field, StringConstraints

from schemas.acp import ACPMessageEnvelope, ACPMessageStatus
from schemas.base import Identifier, Params, Result, Stamp, Timestamp, WireObject
from schemas.mesh import Signature

AGENTS_MAX = 5_000
"""Agents that are at home at one node."""
BATCH_MAX = 100
BODY_MAX = 1024 * 1024
"""Characters of one message with its recipients, as JSON."""

SourceAgent = Annotated[Identifier, Field(alias="source_agent")]


class Directory(WireObject):
    """The agents that a node says are at home there, by address. `stamp` tells older from newer;
    `epoch` is that of the node's store, which is renewed when a backup is restored."""

    agents: Annotated[list[Identifier], Field(max_length=AGENTS_MAX)]
    stamp: Stamp
    epoch: Identifier


class SignedDirectory(WireObject):
    directory: Directory
    signature: Signature


class AgentsParams(Params):
    source_agent: SourceAgent
    listed: SignedDirectory


class AgentsResult(Result):
    """The answering node's own directory; absent while it has none."""

    listed: SignedDirectory | None = None


class Carried(WireObject):
    """A message on its way: `text` of a `Letter`, and the sender's node's word for it."""

    text: Annotated[str, StringConstraints(max_length=BODY_MAX)]
    signature: Signature


class Letter(WireObject):
    """A message for agents of one node. What each node says for itself is absent from the
    envelope: `status` is pending, `updated_at` is not there."""

    message: ACPMessageEnvelope
    hop: Annotated[int, Field(ge=0, le=1_000_000)]
    recipients: Annotated[list[Identifier], Field(min_length=1, max_length=AGENTS_MAX)]
    """Addresses, all at home at the node that it goes to."""


class Reached(WireObject):
    """How far a message is with one recipient, as its home says."""

    recipient: Identifier
    status: ACPMessageStatus
    delivered_at: Timestamp | None = None
    read_at: Timestamp | None = None
    error: Annotated[str, StringConstraints(max_length=2_000)] | None = None


class Receipts(WireObject):
    message_id: Identifier
    reached: Annotated[list[Reached], Field(max_length=AGENTS_MAX)]


class MailParams(Params):
    source_agent: SourceAgent
    messages: Annotated[list[Carried], Field(max_length=BATCH_MAX)] = []
    receipts: Annotated[list[Receipts], Field(max_length=BATCH_MAX)] = []


class MailAnswer(Result):
    """What became of one message: refused for all with `error`, else how far it is with each."""

    error: str | None = None
    reached: list[Reached] = []


class MailResult(Result):
    """An answer for each message, in their order."""

    answers: list[MailAnswer]
