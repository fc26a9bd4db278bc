"""`manifest.v2`: the tasks of a run and how to run them (agent-threader-v2 §7)."""

from enum import StrEnum
from typing import Annotated, Literal, Self

import regex
from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator

from schemas.v2 import ClassName, FailureClass, Name, Operator, TaskId, Version

Reference = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
RuntimeKey = Literal["timeout_sec", "concurrency", "current_batch_size"]
RUNTIME_KEYS: tuple[RuntimeKey, ...] = ("timeout_sec", "concurrency", "current_batch_size")


def _compiles(text: str) -> str:
    try:
        regex.compile(text)
    except regex.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text


Pattern = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_compiles)]


class HealSchedule(StrEnum):
    AUTO = "auto"
    OFF = "off"
    TASK = "task"
    BATCH = "batch"
    EPOCH = "epoch"


class RetryPolicy(Operator):
    max_attempts: int | None = Field(
        None, ge=1, le=100, description="Of this task in all, whatever the healer resets."
    )
    retry_on: list[ClassName] | None = Field(
        None, description="Failure classes that may be retried; absent means the healable ones."
    )


class ManifestTask(Operator):
    id: TaskId
    prompt_ref: Reference
    depends_on: list[TaskId]
    timeout_sec: float = Field(gt=0, le=604_800)
    verify_profile: Name
    context_refs: list[Reference] = Field([])
    priority: float = 0
    retry_policy: RetryPolicy = RetryPolicy()
    metadata: dict[str, JsonValue] = Field({})
    allow_shrink: list[Reference] = Field(
        [], description="Glob patterns of files that this task may shrink below half (§8)."
    )
    contract_id: Name | None = Field(None, description="The CACP contract that this implements.")


class AdapterSpec(Operator):
    """Which CLI runs, and how. Adapters own everything else about it (§9)."""

    adapter: Literal["command", "claude", "opencode", "agent", "interactive", "acp"]
    command: list[str] = Field(
        [], description="The executable and its first arguments; each adapter knows its default."
    )
    args: list[str] = Field([], description="Further arguments, after the adapter's own.")
    output: Literal["text", "json", "stream-json"] = "text"
    prompt: Literal["stdin", "argument"] | None = Field(
        None, description="How the prompt is given; absent means the way of that CLI."
    )
    model: Name | None = None
    env: dict[str, str] = Field({})
    idle_sec: float = Field(30, gt=0, description="Interactive: silence that asks for a rescue.")
    max_rescues: int = Field(3, ge=0, le=20)
    ready: Pattern | None = Field(
        None,
        description="Interactive: a regular expression; the prompt is typed once the screen shows "
        "it. Absent: once something was shown and a second was quiet.",
    )
    ready_sec: float = Field(
        60, gt=0, description="Interactive: the prompt is typed after this long in any case."
    )
    rescues: dict[str, str] = Field(
        {}, description="Interactive: text seen on the screen, and the keys that answer it."
    )


class Bound(Operator):
    min: float = Field(gt=0)
    max: float = Field(gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min ({self.min:g}) must not exceed max ({self.max:g})")
        return self


class Budget(Operator):
    """What a run may use before it stops, as its CLIs report it; absent means no limit."""

    tokens: int | None = Field(None, ge=1, description="Input and output together.")
    usd: float | None = Field(None, gt=0)


class ManifestPolicy(Operator):
    """The operator's policy; the defaults are the specification's (§4, §6)."""

    concurrency: int = Field(1, ge=1, le=1000)
    heal_schedule: HealSchedule = Field(HealSchedule.AUTO, strict=False)
    batch_size: int = Field(5, ge=1, description="Window size of the schedule `batch`.")
    max_batch_size: int = Field(10_000, ge=1)
    failure_threshold: float = Field(0.2, ge=0, le=1)
    max_worker_attempts_per_task: int = Field(2, ge=1, le=100)
    max_heal_rounds_per_window: int = Field(2, ge=0, le=100)
    max_total_heal_rounds: int = Field(8, ge=0, le=1000)
    signature_repeat_limit: int = Field(2, ge=1, le=100)
    healable: list[ClassName] = Field(
        [
            FailureClass.PROMPT_GAP,
            FailureClass.MISSING_PATHS,
            FailureClass.WEAK_CONTRACT,
            FailureClass.CONTRACT_ERROR,
            FailureClass.OUTPUT_FORMAT,
            FailureClass.TIMEOUT,
            FailureClass.TRANSIENT_INFRA,
            FailureClass.WRITE_REJECTED,
            FailureClass.MERGE_CONFLICT,
        ],
        description="Classes the healer may treat. Failed verification of a worker's own "
        "writes is healable besides.",
    )
    runtime_limits: dict[RuntimeKey, Bound] = Field(
        {}, description="What the healer may adjust, and how far; other keys are closed to it."
    )
    healer_timeout_sec: float = Field(900, gt=0)
    outage_pause_sec: float = Field(
        5, gt=0, le=3600, description="The first pause when the provider cannot be had."
    )
    outage_longest_pause_sec: float = Field(
        300, gt=0, le=86_400, description="Pauses double up to this; a longer Retry-After is kept."
    )
    outage_limit_sec: float = Field(
        43_200, ge=0, le=2_592_000, description="An outage that lasts longer ends the run."
    )
    git_lock_sec: float = Field(
        300, gt=0, le=86_400, description="How long a lock of another git is waited for."
    )
    budget: Budget = Field(Budget(), description="Checked between attempts.")
    max_log_bytes: int = Field(256 * 1024 * 1024, ge=1024)


class NodeSpec(Operator):
    """The CACP node that the run reports to."""

    url: str = Field(pattern=r"^https?://")
    project_id: Name
    agent_id: Name
    key_env: Name = Field("CACP_KEY", description="Environment variable that holds the key.")
    escalate_to: Name | None = Field(None, description="Agent that hears of escalations.")


class Manifest(Operator):
    manifest_version: Version
    run_id: TaskId
    tasks: list[ManifestTask] = Field(max_length=100_000)
    workspace: Reference = Field(".", description="Relative to the manifest.")
    verify_profiles: Reference = Field("verify_profiles.json", description="The registry's file.")
    context_refs: list[Reference] = Field([], description="Shared context of every task.")
    worker: AdapterSpec | None = None
    healer: AdapterSpec | None = None
    policy: ManifestPolicy = ManifestPolicy()
    protected: list[Reference] = Field([], description="Further glob patterns no task may write.")
    isolation: Literal["none", "worktree"] = "none"
    node: NodeSpec | None = None
