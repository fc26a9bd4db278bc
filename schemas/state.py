"""`state.v2`: the published state of a run (agent-threader-v2 §7).

It has the members of the specification only; the runner's own state (`run_state.py`) has more.
"""

from typing import Any, Literal

from pydantic import Field

from schemas.manifest import HealSchedule
from schemas.run_state import RunState, RunStatus, StateModel, TaskState, TaskStatus
from schemas.v2 import Version

Timestamp = Field(json_schema_extra={"format": "date-time"})


class HistoryEntry(StateModel):
    task_id: str
    phase: Literal["worker", "verify", "healer", "rollback"]
    attempt_number: int = Field(ge=1)
    log_path: str
    verify_log_path: str | None
    exit_code: int | None
    failure_class: str | None
    failure_signature: str | None
    applied_patch_ids: list[str]
    duration_sec: float | None
    timestamp: str = Timestamp


class Task(StateModel):
    status: TaskStatus
    worker_attempts: int = Field(ge=0)
    healer_attempts: int = Field(ge=0)
    last_failure_class: str | None
    last_failure_signature: str | None
    applied_patch_ids: list[str]
    history: list[HistoryEntry]


class Policy(StateModel):
    heal_schedule: HealSchedule
    batch_strategy: Literal["fibonacci", "fixed"]
    current_batch_size: int = Field(ge=1)
    failure_threshold: float = Field(ge=0, le=1)
    max_worker_attempts_per_task: int = Field(ge=1)
    max_heal_rounds_per_window: int = Field(ge=0)
    max_total_heal_rounds: int = Field(ge=0)
    signature_repeat_limit: int = Field(ge=1)


class Round(StateModel):
    round_number: int = Field(ge=1)
    scope: Literal["task", "batch", "epoch"]
    window_task_ids: list[str]
    failed_task_ids: list[str]
    decision: Literal["RETRY", "ESCALATE", "NOT_FIXABLE"]
    applied_patch_ids: list[str]
    timestamp: str = Timestamp


class State(StateModel):
    state_version: Version
    run_id: str = Field(min_length=1)
    run_status: RunStatus
    abort_reason: str | None
    manifest_digest: str = Field(min_length=1)
    policy: Policy
    tasks: dict[str, Task]
    healing_rounds: list[Round]


_HISTORY = set(HistoryEntry.model_fields)
_TASK: dict[str, Any] = {
    **dict.fromkeys(Task.model_fields, True),
    "history": {"__all__": _HISTORY},
}
_HEAD: dict[str, Any] = {
    **dict.fromkeys(set(State.model_fields) - {"tasks"}, True),
    "policy": set(Policy.model_fields),
    "healing_rounds": {"__all__": set(Round.model_fields)},
}
_DECISIONS = ("RETRY", "ESCALATE", "NOT_FIXABLE")


def task_json(task: TaskState) -> bytes:
    """A task in the form of `state.v2`."""
    return task.model_dump_json(include=_TASK).encode()


def head(state: RunState) -> dict[str, Any]:
    """`state.v2` without its tasks. Older runners counted invalid answers as rounds."""
    published = state.model_dump(mode="json", include=_HEAD)
    rounds = [item for item in published["healing_rounds"] if item["decision"] in _DECISIONS]
    return {**published, "healing_rounds": rounds}
