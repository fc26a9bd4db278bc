"""`task_result.v2`: what a worker reports (agent-threader-v2 §7)."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.v2 import Reported, Version


class ResultStatus(StrEnum):
    DONE = "DONE"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"
    CONTRACT_ERROR = "CONTRACT_ERROR"


class Write(Reported):
    """One proposed file write; the orchestrator alone applies it (§8)."""

    path: str = Field(min_length=1, max_length=4096)
    op: Literal["create", "replace", "append"]
    encoding: Literal["utf8"] = "utf8"
    content: str | None = None
    content_ref: str | None = Field(None, min_length=1, max_length=4096)
    sha256_before: str | None = Field(None, pattern=r"^(sha256:)?[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if self.content is None and self.content_ref is None:
            raise ValueError("one of content and content_ref must be given")
        if self.content is not None and self.content_ref is not None:
            raise ValueError("content and content_ref exclude each other")
        return self


class Evidence(Reported):
    """What the worker claims to have run; it never decides the verdict."""

    commands: list[str] = Field([])
    log_refs: list[str] = Field([])
    notes: list[str] = Field([])


class TaskResult(Reported):
    contract_version: Version
    task_id: str
    status: ResultStatus = Field(strict=False)
    summary: str
    changed_files: list[str] = Field([])
    writes: list[Write] = Field([], max_length=10_000)
    evidence: Evidence = Evidence()
    failure_class: str | None = None
