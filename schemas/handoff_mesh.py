"""What mesh nodes say to each other about handoffs (acp-canonical §7; design §6, §7)."""

from typing import Literal

from schemas.acp_mesh import SourceAgent
from schemas.base import Identifier, JsonObject, Params, Result
from schemas.handoff import HandoffParams, HandoffResult

RefusalKind = Literal[
    "InvalidInput",
    "NotFound",
    "IllegalTransition",
    "Forbidden",
    "Conflict",
    "RateLimited",
    "TooLarge",
]


class HandoffCallParams(Params):
    """A call of `acp/handoff` by an agent that is at home at the node which forwards it."""

    source_agent: SourceAgent
    agent: Identifier
    call: HandoffParams
    human: bool = False
    """That node's word that the key was a human's. It counts only where an operator named the node
    as one whose word on that is taken."""


class HandoffRefusal(Result):
    """Why the agent's call was refused, to be told to it as if it had called here."""

    kind: RefusalKind
    message: str
    data: JsonObject


class HandoffCallResult(Result):
    """What came of the agent's call: one of the two."""

    answer: HandoffResult | None = None
    refusal: HandoffRefusal | None = None
