"""From an attempt to the task's next state (agent-threader-v2 §6, §10)."""

from typing import Any

import pytest

from schemas.manifest import ManifestPolicy
from schemas.run_state import TaskState, TaskStatus
from schemas.task_result import TaskResult
from tests.threader.builders import make_manifest
from threader.outage import Outage, OutageKind
from threader.outcome import (
    Ending,
    Failure,
    Rules,
    classify_execution,
    is_healable,
    may_retry,
    reset,
    retry,
    rules_for,
    settle,
)
from threader.parsing import ParsedContract, ParserErrorCode, ParserFailure

NO_FENCE = ParserFailure(ParserErrorCode.NO_SENTINEL, "none")


def result(status: str, **fields: Any) -> ParsedContract[TaskResult]:
    return ParsedContract(
        TaskResult.model_validate(
            {
                "contract_version": "2.0",
                "task_id": "A",
                "status": status,
                "summary": "said so",
                **fields,
            }
        )
    )


def rules(**task: Any) -> Rules:
    manifest = make_manifest([{"id": "A", **task}])
    return rules_for(manifest.tasks[0], ManifestPolicy())


@pytest.mark.parametrize(
    ("ending", "code", "parsed", "tail", "expected"),
    [
        (Ending.TIMED_OUT, None, result("DONE"), "", "timeout:worker_time_limit"),
        (Ending.IDLE, None, NO_FENCE, "", "timeout:worker_idle"),
        (Ending.LOG_TOO_LARGE, None, NO_FENCE, "", "output_format:log_too_large"),
        (Ending.NOT_STARTED, None, NO_FENCE, "no such file", "transient_infra:not started"),
        (Ending.EXITED, 0, NO_FENCE, "prose", "contract_error:no_sentinel"),
        (Ending.EXITED, 1, NO_FENCE, "ValueError: x", "transient_infra:exit ValueError"),
        (Ending.EXITED, 0, result("BLOCKED"), "", "blocked_external:said so"),
        (Ending.EXITED, 0, result("FAILED"), "", "prompt_gap:said so"),
        (Ending.EXITED, 0, result("FAILED", failure_class="real_bug"), "", "real_bug:said so"),
        (Ending.EXITED, 0, result("FAILED", failure_class="bogus"), "", "prompt_gap:said so"),
        (Ending.EXITED, 0, result("FAILED", failure_class="test_error"), "", "prompt_gap:said"),
        (Ending.EXITED, 0, result("CONTRACT_ERROR"), "", "contract_error:said so"),
    ],
)
def test_classification(
    ending: Ending,
    code: int | None,
    parsed: ParsedContract[TaskResult] | ParserFailure,
    tail: str,
    expected: str,
) -> None:
    found = classify_execution(ending, code, parsed, tail)
    assert found is not None
    assert f"{found.failure_class}:{found.signal}".startswith(expected)


def test_an_exit_code_alone_decides_nothing() -> None:
    """§5: a valid result goes on to verification whatever the exit code."""
    assert classify_execution(Ending.EXITED, 3, result("DONE"), "") is None


def test_failed_verification_is_healable_only_with_own_writes() -> None:
    assert is_healable(Failure("test_error", "x", own_writes=True), rules())
    assert not is_healable(Failure("test_error", "x"), rules())
    assert not is_healable(Failure("real_bug", "x", own_writes=True), rules())


def test_retry_on_narrows_what_is_retried() -> None:
    only_timeouts = rules(retry_policy={"retry_on": ["timeout"]})
    assert is_healable(Failure("timeout", "x"), only_timeouts)
    assert not is_healable(Failure("prompt_gap", "x"), only_timeouts)
    task = settle(TaskState(), "A", Failure("prompt_gap", "x"), only_timeouts)
    assert task.status is TaskStatus.ESCALATED


def test_retry_on_may_name_what_is_not_healable() -> None:
    stubborn = rules(retry_policy={"retry_on": ["real_bug", "blocked_external"]})
    task = settle(TaskState(), "A", Failure("real_bug", "x"), stubborn)
    assert (task.status, may_retry(task, stubborn)) == (TaskStatus.FAILED, True)
    task = settle(retry(task), "A", Failure("real_bug", "x"), stubborn)
    assert task.status is TaskStatus.ESCALATED
    blocked = Failure("blocked_external", "x", blocked=True)
    task = settle(TaskState(), "A", blocked, stubborn)
    assert (task.status, may_retry(task, stubborn)) == (TaskStatus.BLOCKED, True)


def test_the_contract_retry_is_free_and_single() -> None:
    failure = Failure("contract_error", "no_sentinel", parser_error=True)
    task = settle(TaskState(), "A", failure, rules())
    assert (task.status, task.worker_attempts) == (TaskStatus.PENDING, 0)
    assert "TASK_RESULT_V2" in task.hints[0]
    task = settle(task, "A", failure, rules())
    assert (task.status, task.worker_attempts) == (TaskStatus.FAILED, 1)


def test_a_reset_grants_fresh_attempts() -> None:
    task = settle(TaskState(), "A", Failure("timeout", "x"), rules())
    fresh = reset(task, ["patch-001"])
    assert (fresh.status, fresh.worker_attempts, fresh.healer_attempts) == ("PENDING", 0, 1)
    assert fresh.signature_at_heal == "timeout:x"
    assert fresh.applied_patch_ids == ["patch-001"]


def test_another_signature_starts_the_count_again() -> None:
    task = TaskState()
    for signal in ("x", "x", "y", "x"):
        task = reset(settle(task, "A", Failure("timeout", signal), rules()), [])
    assert task.signature_repeats == 0


def test_an_outage_is_no_attempt() -> None:
    outage = Outage(OutageKind.NETWORK, "fetch failed")
    failure = classify_execution(Ending.TIMED_OUT, None, NO_FENCE, "", outage)
    assert failure is not None
    before = TaskState(worker_attempts=1, contract_retries=1, hints=["mind the fence"])
    task = settle(before, "A", failure, rules())
    assert (task.status, task.last_failure_signature) == ("PENDING", "transient_infra:network")
    assert (task.worker_attempts, task.contract_retries) == (1, 1)
    assert task.hints == ["mind the fence"], "the next attempt is this one"


def test_a_result_counts_whatever_trouble_it_took() -> None:
    outage = Outage(OutageKind.NETWORK, "fetch failed")
    assert classify_execution(Ending.EXITED, 0, result("DONE"), "", outage) is None


def test_a_broken_block_is_no_overload_whatever_its_words() -> None:
    parsed = ParserFailure(ParserErrorCode.INVALID_JSON, "line 1")
    failure = classify_execution(Ending.EXITED, 0, parsed, "I added the rate limit")
    assert failure is not None
    assert failure.parser_error


def test_a_tasks_own_max_attempts_holds_whatever_the_healer_resets() -> None:
    twice = rules(retry_policy={"max_attempts": 2})
    task = settle(TaskState(), "A", Failure("timeout", "x"), twice)
    assert (task.status, task.healable) == (TaskStatus.FAILED, True)
    task = settle(reset(task, []), "A", Failure("timeout", "y"), twice)
    assert task.status is TaskStatus.ESCALATED
    assert task.escalation_reason == "its max_attempts (2) are used up"
