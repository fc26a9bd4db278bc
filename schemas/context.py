"""ContextPacket (CACP 2.0, Data Types; Context Methods)."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import (
    Identifier,
    JsonObject,
    Params,
    Result,
    Strings,
    Text,
    Timestamp,
    WireObject,
)

ContextType = Literal[
    "code_snippet",
    "type_definition",
    "api_spec",
    "error_catalog",
    "env_config",
    "test_case",
    "dependency_info",
    "implementation_status",
    "question",
    "decision",
]


class ContextPacket(WireObject):
    """Something that one agent shares with the others of a project. Immutable."""

    packet_id: Identifier
    from_repo: Identifier
    from_agent: Identifier
    timestamp: Timestamp
    type: ContextType
    content: JsonObject
    related_contracts: Strings = []
    reply_to: Identifier | None = None


class ShareParams(Params):
    project_id: Identifier
    type: ContextType
    content: JsonObject
    related_contracts: Strings | None = None
    reply_to: Identifier | None = None


class AskQuestionParams(Params):
    project_id: Identifier
    question: Text
    options: Strings | None = None
    urgent: bool = False
    related_contracts: Strings | None = None
    reply_to: Identifier | None = None


class RecordDecisionParams(Params):
    project_id: Identifier
    decision: Text
    chosen: Text
    rationale: Text
    implications: Strings | None = None
    related_contracts: Strings | None = None
    reply_to: Identifier | None = None


class ShareResult(Result):
    packet_id: Identifier
    status: Literal["shared"]


class ListContextParams(Params):
    project_id: Identifier
    type: ContextType | None = None
    contract_id: Identifier | None = None
    since: Timestamp | None = None
    before: Identifier | None = None
    """Only packets that are listed before the packet with this id."""
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50


class ListContextResult(Result):
    packets: list[ContextPacket]


class ThreadParams(Params):
    project_id: Identifier
    packet_id: Identifier


class ThreadResult(Result):
    thread: list[ContextPacket]
