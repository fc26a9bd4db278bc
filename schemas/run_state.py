"""`state.v2`: what a run knows about itself, on disk (agent-threader-v2 §7)."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.manifest import HealSchedule
from schemas.v2 import Version


class RunStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


class TaskStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"
    ESCALATED = "ESCALATED"


SETTLED = frozenset({TaskStatus.DONE, TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.ESCALATED})


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=False)


class HistoryRecord(Record):
    task_id: str
    phase: Literal["worker", "verify", "healer", "rollback"]
    attempt_number: int
    log_path: str
    verify_log_path: str | None = None
    exit_code: int | None = None
    failure_class: str | None = None
    failure_signature: str | None = None
    applied_patch_ids: list[str] = Field([])
    duration_sec: float | None = None
    timestamp: str
    notes: list[str] = Field([], description="What else is worth knowing: repairs, extra fences.")
    diff_path: str | None = Field(None, description="The writes as a unified diff.")
    files: list[str] = Field([], description="The files that the writes changed.")


class TaskState(Record):
    status: TaskStatus = TaskStatus.PENDING
    worker_attempts: int = Field(0, description="Since the last reset; capped by retry policy.")
    healer_attempts: int = 0
    last_failure_class: str | None = None
    last_failure_signature: str | None = None
    applied_patch_ids: list[str] = Field([])
    history: list[HistoryRecord] = Field([])
    revision: int = Field(0, description="Counts checkpoints; the larger of two is the newer.")
    runs: int = Field(0, description="All worker attempts ever; numbers the logs.")
    contract_retries: int = Field(0, description="Free contract-format retries used (at most 1).")
    healable: bool = Field(False, description="Whether the last failure counts for healing.")
    signature_repeats: int = Field(0, description="The same signature again after healing.")
    signature_at_heal: str | None = None
    hints: list[str] = Field([], description="Contract hints for the next prompt only.")
    timeout_sec: float | None = Field(None, description="Set by a runtime patch.")
    epoch: int = Field(0, description="Not scheduled before this epoch.")
    escalation_reason: str | None = None
    definition: str | None = Field(None, description="Digest of the task's definition.")


class PolicyState(Record):
    heal_schedule: HealSchedule
    batch_strategy: Literal["fibonacci", "fixed"]
    current_batch_size: int
    failure_threshold: float
    max_worker_attempts_per_task: int
    max_heal_rounds_per_window: int
    max_total_heal_rounds: int
    signature_repeat_limit: int
    concurrency: int = 1


class WindowState(Record):
    """The window under way. Its members that are PENDING have yet to run."""

    number: int
    task_ids: list[str]
    heal_rounds: int = 0
    passes: int = Field(1, description="1 for the first attempt, one more for each retry.")
    needs_heal: bool = Field(False, description="Judged, and waiting for the healer.")
    healed_failures: dict[str, str] = Field(
        {}, description="Task and signature that the last heal round set out to mend."
    )


class HealingRound(Record):
    round_number: int
    scope: Literal["task", "batch", "epoch"]
    window_task_ids: list[str]
    failed_task_ids: list[str]
    decision: str = Field(description="RETRY, ESCALATE, NOT_FIXABLE, or INVALID with a note.")
    applied_patch_ids: list[str] = Field([])
    timestamp: str
    window: int = 0
    log_path: str = ""
    failure_class: str | None = None
    root_cause: str | None = None
    learned_rule: str | None = None
    note: str | None = None
    duration_sec: float | None = None
    diff_path: str | None = Field(None, description="The patched files as a unified diff.")
    changes: list[str] = Field([], description="Hints and settings that it granted, in words.")
    converging: bool | None = Field(None, description="Known once the retry has settled.")


class LearnedRule(Record):
    """Kept for people; never promoted into shared context by itself (§10)."""

    round_number: int
    rule: str


class WindowRecord(Record):
    """One judged pass of a window, for the report's timeline."""

    number: int
    attempt: int
    size: int
    done: int
    failure_rate: float
    next_batch_size: int
    verdict: str
    timestamp: str


class RunState(Record):
    state_version: Version = "2.0"
    run_id: str
    run_status: RunStatus = RunStatus.RUNNING
    abort_reason: str | None = None
    manifest_digest: str
    policy: PolicyState
    tasks: dict[str, TaskState]
    healing_rounds: list[HealingRound] = Field([])
    window: WindowState | None = None
    windows: list[WindowRecord] = Field([])
    learned_rules: list[LearnedRule] = Field([])
    epoch: int = 0
    stalled_rounds: int = Field(0, description="Heal rounds in a row without convergence (§10).")
    started_at: str = ""
    updated_at: str = ""
