"""`task_result.v2`: what a worker reports (agent-threader-v2 §7)."""

import re
from enum import StrEnum
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.v2 import Reported, Version

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


class ResultStatus(StrEnum):
    DONE = "DONE"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"
    CONTRACT_ERROR = "CONTRACT_ERROR"


class Write(Reported):
    """One proposed file write; the orchestrator alone applies it (§8)."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "string"}}}
                for name in ("content", "content_ref")
            ]
        }
    )

    path: str = Field(min_length=1, max_length=4096)
    op: Literal["create", "replace", "append"]
    encoding: Literal["utf8"]
    content: str | None = Field(None, description="Counts before content_ref, unless empty.")
    content_ref: str | None = Field(None, min_length=1, max_length=4096)
    sha256_before: str | None = Field(
        None, description="Hex, with or without `sha256:`. Any other text is not checked."
    )

    @property
    def expected(self) -> str | None:
        """The digest that the file should have, in lower-case hex; None when none is given."""
        match = _DIGEST.fullmatch(self.sha256_before or "")
        return match[1].lower() if match else None

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if self.content is None and self.content_ref is None:
            raise ValueError("one of content and content_ref must be given")
        return self


class Evidence(Reported):
    """What the worker claims to have run; it never decides the verdict."""

    commands: list[str] = Field([])
    log_refs: list[str] = Field([])
    notes: list[str] = Field([])


class TaskResult(Reported):
    contract_version: Version
    task_id: str = Field(min_length=1)
    status: ResultStatus = Field(strict=False)
    summary: str = Field(min_length=1)
    changed_files: list[str] = Field([])
    writes: list[Write] = Field([], max_length=10_000)
    evidence: Evidence = Evidence()
    failure_class: str | None = None
