"""The common parts of the five AgentThreader v2 contracts (agent-threader-v2 §7)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

VERSION = "2.0"
Version = Literal["2.0"]


class Operator(BaseModel):
    """A contract that people write: an unknown field or a number in quotes is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reported(BaseModel):
    """A contract that a model writes: unknown fields are ignored, known ones are strict."""

    model_config = ConfigDict(extra="ignore", strict=True)


TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""Part of file names of logs and checkpoints: a plain file name of up to 100 characters."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]

ClassName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
"""A failure class: lower case, words joined by underscores."""


class FailureClass(StrEnum):
    """The failure classes (§6). The last three are additions to the specification."""

    PROMPT_GAP = "prompt_gap"
    MISSING_PATHS = "missing_paths"
    WEAK_CONTRACT = "weak_contract"
    CONTRACT_ERROR = "contract_error"
    OUTPUT_FORMAT = "output_format"
    TIMEOUT = "timeout"
    TRANSIENT_INFRA = "transient_infra"
    BLOCKED_EXTERNAL = "blocked_external"
    REAL_BUG = "real_bug"
    BUILD_ERROR = "build_error"
    TEST_ERROR = "test_error"
    SMOKE_ERROR = "smoke_error"
    WRITE_REJECTED = "write_rejected"
    MERGE_CONFLICT = "merge_conflict"
    PROMPT_TOO_LARGE = "prompt_too_large"
