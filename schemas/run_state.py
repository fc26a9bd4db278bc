"""The state of a run on disk: the members of `state.v2` (`state.py`), and the runner's own."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.manifest import Budget, HealSchedule
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


class StateModel(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=False)


class Usage(StateModel):
    """The tokens and cost that the log of one invocation reports; None: not reported."""

    input_tokens: int | None = Field(None, description="All input, cached or not.")
    cached_tokens: int | None = Field(
        None, description="The part of the input that was read from a cache."
    )
    output_tokens: int | None = Field(None, description="All output, with reasoning.")
    cost_usd: float | None = Field(None, description="As the CLI estimates it.")


class Spent(StateModel):
    """What several invocations used together, as far as their logs report it."""

    invocations: int = 0
    completed: int = Field(0, description="Those that completed successfully.")
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    tokens_told: int = Field(0, description="Invocations whose log reports tokens.")
    cost_told: int = Field(0, description="Invocations whose log reports cost.")


class FileStat(StateModel):
    """Lines that a task's writes added and removed; None where a file is too large to compare."""

    path: str
    added: int | None
    removed: int | None


class KeptCopy(StateModel):
    """A copy of a file that somebody edited while a task's writes were applied to it."""

    path: str = Field(description="In the workspace.")
    place: str = Field(description="Relative to the run's folder.")

    @property
    def text(self) -> str:
        return (
            f"{self.path} was edited while a task's writes were applied; that version is kept as "
            f"{self.place}"
        )


class Interruption(StateModel):
    """A time in which the run was interrupted, and why."""

    kind: Literal["outage", "lock", "stopped", "killed", "ended"]
    cause: str
    began: str
    ended: str | None = Field(None, description="None: it has not ended.")
    tasks: list[str] = Field(
        [], description="The tasks whose attempts it cut off; these don't count."
    )
    tries: int = Field(0, description="Attempts that met the outage.")


class HistoryRecord(StateModel):
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
    notes: list[str] = Field([], description="Further facts, such as repairs and extra fences.")
    diff_path: str | None = Field(None, description="The writes as a unified diff.")
    files: list[str] = Field([], description="The files that the writes changed.")
    stat: list[FileStat] = Field([])
    said: str | None = Field(None, description="The worker's own words: its summary, or its last.")
    usage: Usage | None = None
    outage: str | None = Field(None, description="Why the provider was unavailable.")
    commit: str | None = Field(None, description="The commit that holds the writes, if any.")
    kept: list[KeptCopy] = Field([])


class TaskState(StateModel):
    status: TaskStatus = TaskStatus.PENDING
    worker_attempts: int = Field(0, description="Since the last reset; capped by retry policy.")
    attempts: int = Field(0, description="All that counted, over every reset by the healer.")
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


class PolicyState(StateModel):
    heal_schedule: HealSchedule
    batch_strategy: Literal["fibonacci", "fixed"]
    current_batch_size: int
    failure_threshold: float
    max_worker_attempts_per_task: int
    max_heal_rounds_per_window: int
    max_total_heal_rounds: int
    signature_repeat_limit: int
    concurrency: int = 1


class WindowState(StateModel):
    """The window under way. Its members that are PENDING have yet to run."""

    number: int
    task_ids: list[str]
    heal_rounds: int = 0
    passes: int = Field(1, description="1 for the first attempt, one more for each retry.")
    needs_heal: bool = Field(False, description="Judged, and waiting for the healer.")
    healed_failures: dict[str, str] = Field(
        {}, description="Task and signature that the last heal round set out to mend."
    )
    healer_failures: int = Field(0, description="Answers of the healer that were no decision.")


class HealingRound(StateModel):
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
    usage: Usage | None = None


class HealerFailure(StateModel):
    """A healer that crashed, or whose decision was invalid or refused: no heal round."""

    window: int
    failed_task_ids: list[str]
    note: str
    log_path: str
    timestamp: str
    usage: Usage | None = None


class LearnedRule(StateModel):
    """Kept for people; never promoted into shared context by itself (§10)."""

    round_number: int
    rule: str


class WindowRecord(StateModel):
    """One judged pass of a window, for the report's timeline."""

    number: int
    attempt: int
    size: int
    done: int
    failure_rate: float
    next_batch_size: int
    verdict: str
    timestamp: str


class RunState(StateModel):
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
    healer_failures: list[HealerFailure] = Field([])
    epoch: int = 0
    stalled_rounds: int = Field(0, description="Heal rounds in a row without convergence (§10).")
    no_convergence: str | None = Field(
        None, description="Why healing was first given up for failing tasks; others went on."
    )
    rounds_forgiven: int = Field(
        0, description="Heal rounds made before a person last retried tasks: outside the bound."
    )
    interruptions: list[Interruption] = Field([])
    kept: list[KeptCopy] = Field([], description="Besides those that the tasks' records name.")
    aside: Spent = Field(
        Spent(), description="On attempts that were cut short, and tasks that are gone."
    )
    cut_logs: list[str] = Field([], description="Of invocations cut short that `aside` counts.")
    budget: Budget | None = Field(None, description="Given by the operator over the manifest's.")
    compat: str | None = Field(
        None, description="The other format of results that the run reads, until given anew."
    )
    started_at: str = ""
    updated_at: str = ""
