"""Decides a task's next state from the outcome of an attempt (agent-threader-v2 §6, §10). Pure."""

from dataclasses import dataclass
from enum import StrEnum

from schemas.manifest import ManifestPolicy, ManifestTask
from schemas.run_state import TaskState, TaskStatus
from schemas.task_result import ResultStatus, TaskResult
from schemas.v2 import FailureClass
from threader.outage import Outage, PromptTooLarge
from threader.parsing import ParsedContract, ParserFailure
from threader.signatures import primary_signal, signature

FORMAT_REMINDER = (
    "Your last output did not keep to the contract ({problem}). End your output with exactly one "
    "TASK_RESULT_V2 block: each fence alone on its line, strict JSON between them, no Markdown."
)

VERIFY_CLASSES = frozenset(
    {FailureClass.BUILD_ERROR, FailureClass.TEST_ERROR, FailureClass.SMOKE_ERROR}
)


class Ending(StrEnum):
    """How a process ended."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    IDLE = "idle"
    LOG_TOO_LARGE = "log_too_large"
    NOT_STARTED = "not_started"


@dataclass(frozen=True)
class Failure:
    """Why an attempt did not end DONE."""

    failure_class: str
    signal: str
    blocked: bool = False
    parser_error: bool = False
    own_writes: bool = False
    """The worker's writes were applied when verification failed, so its work is the suspect."""
    outage: Outage | None = None
    """The provider was unavailable: the attempt does not count."""
    reason: str | None = None
    """An explanation for people, where the class alone says too little."""


def classify_execution(
    ending: Ending,
    exit_code: int | None,
    parsed: ParsedContract[TaskResult] | ParserFailure,
    tail: str,
    trouble: Outage | PromptTooLarge | None = None,
) -> Failure | None:
    """The failure that the process and its output show; None when the writes may be applied.

    `tail` is the end of the output, `trouble` what it says about the provider. An exit code alone
    never means success (§5).
    """
    if isinstance(parsed, ParserFailure):
        if isinstance(trouble, Outage):
            return Failure(FailureClass.TRANSIENT_INFRA, trouble.kind, outage=trouble)
        if trouble is not None:
            return Failure(
                FailureClass.PROMPT_TOO_LARGE, "refused by the provider", reason=trouble.reason
            )
    if ending in (Ending.TIMED_OUT, Ending.IDLE):
        name = "worker_idle" if ending is Ending.IDLE else "worker_time_limit"
        return Failure(FailureClass.TIMEOUT, name)
    if ending is Ending.LOG_TOO_LARGE:
        return Failure(FailureClass.OUTPUT_FORMAT, "log_too_large")
    if ending is Ending.NOT_STARTED:
        return Failure(FailureClass.TRANSIENT_INFRA, f"not started {tail}")
    if isinstance(parsed, ParserFailure):
        if parsed.signal == "no_sentinel" and exit_code != 0:
            return Failure(
                FailureClass.TRANSIENT_INFRA, f"exit {primary_signal(tail) if tail else exit_code}"
            )
        return Failure(FailureClass.CONTRACT_ERROR, parsed.signal, parser_error=True)
    return classify_result(parsed.value)


def classify_result(result: TaskResult) -> Failure | None:
    """The failure that a valid result declares; None when it claims DONE."""
    if result.status is ResultStatus.DONE:
        return None
    if result.status is ResultStatus.BLOCKED:
        return Failure(FailureClass.BLOCKED_EXTERNAL, result.summary, blocked=True)
    if result.status is ResultStatus.CONTRACT_ERROR:
        return Failure(FailureClass.CONTRACT_ERROR, result.summary)
    hint = result.failure_class
    known = hint in frozenset(FailureClass) and hint not in VERIFY_CLASSES
    return Failure(str(hint) if known else FailureClass.PROMPT_GAP, result.summary)


@dataclass(frozen=True)
class Rules:
    """The policy as it applies to one task."""

    max_attempts: int
    retry_on: frozenset[str] | None
    healable: frozenset[str]
    signature_repeat_limit: int
    limit: int | None
    """The task's own `max_attempts`, which no reset by the healer exceeds."""

    def used_up(self, attempts: int) -> bool:
        return self.limit is not None and attempts >= self.limit


def rules_for(task: ManifestTask, policy: ManifestPolicy) -> Rules:
    own = task.retry_policy
    return Rules(
        max_attempts=own.max_attempts or policy.max_worker_attempts_per_task,
        retry_on=None if own.retry_on is None else frozenset(own.retry_on),
        healable=frozenset(policy.healable),
        signature_repeat_limit=policy.signature_repeat_limit,
        limit=own.max_attempts,
    )


def is_healable(failure: Failure, rules: Rules) -> bool:
    """By class; failed verification only when the task's own writes were applied (§6)."""
    by_class = failure.failure_class in rules.healable
    by_evidence = failure.failure_class in VERIFY_CLASSES and failure.own_writes
    permitted = rules.retry_on is None or failure.failure_class in rules.retry_on
    return (by_class or by_evidence) and permitted


def may_retry(task: TaskState, rules: Rules) -> bool:
    """Whether the retry policy grants another attempt without the healer (§10)."""
    if task.status not in (TaskStatus.FAILED, TaskStatus.BLOCKED):
        return False
    if task.worker_attempts >= rules.max_attempts or rules.used_up(task.attempts):
        return False
    if rules.retry_on is not None:
        return task.last_failure_class in rules.retry_on
    return task.healable


def settle(task: TaskState, task_id: str, failure: Failure | None, rules: Rules) -> TaskState:
    """The task after one worker attempt, as a new state; `history` is left to the caller."""
    if failure is None:
        return task.model_copy(
            update={
                "status": TaskStatus.DONE,
                "worker_attempts": task.worker_attempts + 1,
                "attempts": task.attempts + 1,
                "last_failure_class": None,
                "last_failure_signature": None,
                "healable": False,
                "hints": [],
            }
        )
    mark = signature(failure.failure_class, failure.signal, task_id)
    update: dict[str, object] = {
        "last_failure_class": failure.failure_class,
        "last_failure_signature": mark,
    }
    if failure.outage is not None:
        return task.model_copy(update={**update, "status": TaskStatus.PENDING})
    update["hints"] = []
    if failure.parser_error and task.contract_retries == 0:
        reminder = FORMAT_REMINDER.format(problem=failure.signal.replace("_", " "))
        update |= {"status": TaskStatus.PENDING, "contract_retries": 1, "hints": [reminder]}
        return task.model_copy(update=update)
    used_up = rules.used_up(task.attempts + 1)
    healable = is_healable(failure, rules) and not used_up
    repeats = task.signature_repeats + 1 if mark == task.signature_at_heal else 0
    update |= {
        "status": TaskStatus.BLOCKED if failure.blocked else TaskStatus.FAILED,
        "worker_attempts": task.worker_attempts + 1,
        "attempts": task.attempts + 1,
        "healable": healable,
        "signature_repeats": repeats,
    }
    settled = task.model_copy(update=update)
    if repeats >= rules.signature_repeat_limit:
        return escalate(settled, f"{mark} came back {repeats} times after healing")
    if used_up and not failure.blocked:
        return escalate(settled, f"its max_attempts ({rules.limit}) are used up")
    if not healable and not failure.blocked and not may_retry(settled, rules):
        why = failure.reason or f"{failure.failure_class} is not healable and not retried"
        return escalate(settled, why)
    return settled


def escalate(task: TaskState, reason: str) -> TaskState:
    """Give a task up: it is never retried automatically (§10)."""
    return task.model_copy(
        update={"status": TaskStatus.ESCALATED, "escalation_reason": reason, "healable": False}
    )


def trouble(task: TaskState) -> str:
    """Why a task is not done, for people; empty when nothing failed."""
    reason, mark = task.escalation_reason, task.last_failure_signature
    if reason and mark and mark not in reason:
        return f"{reason}; it failed with {mark}"
    return reason or mark or ""


def retry(task: TaskState) -> TaskState:
    """Pending again, by retry policy: the attempts made still count."""
    return task.model_copy(update={"status": TaskStatus.PENDING})


def reset(task: TaskState, patch_ids: list[str]) -> TaskState:
    """Pending again, by the healer: fresh worker attempts, and the signature to compare with."""
    return task.model_copy(
        update={
            "status": TaskStatus.PENDING,
            "worker_attempts": 0,
            "healer_attempts": task.healer_attempts + 1,
            "signature_at_heal": task.last_failure_signature,
            "applied_patch_ids": [*task.applied_patch_ids, *patch_ids],
        }
    )
