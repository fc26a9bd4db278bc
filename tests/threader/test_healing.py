"""Guardrails of the healer (agent-threader-v2 §6 "Healer Authority", §7, §8)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.heal_decision import HealDecision
from schemas.run_state import TaskState, TaskStatus, WindowState
from tests.threader.builders import decide, make_manifest
from threader.healing import Grant, after_heal, review
from threader.outcome import rules_for

LIMITS = {
    "timeout_sec": {"min": 10, "max": 1200},
    "current_batch_size": {"min": 1, "max": 5},
}
MANIFEST = make_manifest(
    [
        {"id": "A", "context_refs": ["shared.md"]},
        {"id": "B", "context_refs": ["shared.md", "own.md"]},
        {"id": "C"},
    ],
    {"runtime_limits": LIMITS},
)


def patch(target: str, content: Any, operation: str = "append", **fields: Any) -> HealDecision:
    item = {"target": target, "operation": operation, "content": content, **fields}
    return decide(patches=[item])


def granted(decision: HealDecision, scope: tuple[str, ...] = ("A", "B")) -> Grant:
    found = review(decision, MANIFEST, scope, 7)
    assert isinstance(found, Grant), found
    return found


def test_allowed_patches_are_granted_and_numbered() -> None:
    grant = granted(patch("shared_context", "rule", path="shared.md"))
    assert grant.files[0].path == "shared.md"
    assert grant.patch_ids == ("patch-007",)
    assert set(grant.touched) == {"A", "B"}
    prompt = granted(patch("task_prompt", "new", "replace", task_id="A"))
    assert (prompt.files[0].path, prompt.files[0].append) == ("prompts/A.md", False)


def test_the_target_decides_whatever_fields_are_given() -> None:
    grant = granted(patch("shared_context", "rule", path="shared.md", task_id="A"))
    assert grant.files[0].path == "shared.md"


def test_hints_reach_one_task_or_the_scope() -> None:
    assert set(granted(patch("contract_hint", "mind the fence")).hints) == {"A", "B"}
    assert set(granted(patch("contract_hint", "mind", task_id="B")).hints) == {"B"}


def test_runtime_keys_stay_within_the_operators_bounds() -> None:
    grant = granted(patch("runtime_patch", {"timeout_sec": 600, "current_batch_size": 2}, "merge"))
    assert grant.runtime == {"timeout_sec": 600, "current_batch_size": 2}


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (patch("shared_context", "x", path="src/app.py"), "no task in the healing scope reads"),
        (patch("shared_context", "x", path="../../etc/passwd"), "no task in the healing scope"),
        (patch("task_prompt", "x", task_id="C"), "C is not in the healing scope"),
        (patch("task_prompt", "x", task_id="A", path="src/app.py"), "prompts/A.md"),
        (patch("contract_hint", "x", task_id="C"), "C is not in the healing scope"),
        (patch("runtime_patch", {"concurrency": 4}, "merge"), "has not opened"),
        (patch("runtime_patch", {"heal_schedule": "off"}, "merge"), "has not opened"),
        (patch("runtime_patch", {"model": "other"}, "merge"), "has not opened"),
        (patch("runtime_patch", {"timeout_sec": 9999}, "merge"), "outside 10 to 1200"),
        (patch("runtime_patch", {"timeout_sec": True}, "merge"), "must be a number"),
        (patch("runtime_patch", {"current_batch_size": 1.5}, "merge"), "whole number"),
        (decide(decision="ESCALATE", escalations=[{"task_id": "Z"}]), "Z is not in"),
    ],
)
def test_what_goes_beyond_is_refused(decision: HealDecision, says: str) -> None:
    found = review(decision, MANIFEST, ("A", "B"), 1)
    assert isinstance(found, list)
    assert says in found[0]


def test_a_shared_prompt_belongs_to_all_its_tasks() -> None:
    manifest = make_manifest([{"id": "A", "prompt_ref": "p.md"}, {"id": "B", "prompt_ref": "p.md"}])
    found = review(patch("task_prompt", "x", task_id="A"), manifest, ["A"], 1)
    assert isinstance(found, list)
    assert "read by B too" in found[0]


def test_a_prompt_that_others_read_as_context_is_theirs_too() -> None:
    manifest = make_manifest(
        [{"id": "A", "prompt_ref": "p.md"}, {"id": "B", "context_refs": ["p.md"]}]
    )
    found = review(patch("task_prompt", "x", task_id="A"), manifest, ["A"], 1)
    assert isinstance(found, list)


def test_the_task_schedule_reaches_no_other_task() -> None:
    manifest = make_manifest(
        [{"id": "A", "context_refs": ["s.md"]}, {"id": "B", "context_refs": ["s.md"]}],
        {"heal_schedule": "task"},
    )
    found = review(patch("shared_context", "x", path="s.md"), manifest, ["A"], 1)
    assert isinstance(found, list)


JSON = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.just("5"))


@given(st.dictionaries(st.sampled_from([*LIMITS, "concurrency", "protected", "x"]), JSON))
def test_no_runtime_patch_leaves_the_bounds(content: dict[str, Any]) -> None:
    found = review(patch("runtime_patch", content, "merge"), MANIFEST, ("A",), 1)
    if isinstance(found, Grant):
        for key, value in found.runtime.items():
            assert LIMITS[key]["min"] <= value <= LIMITS[key]["max"]


def test_tasks_the_healer_leaves_out_need_an_attempt_of_their_own() -> None:
    rules = {task.id: rules_for(task, MANIFEST.policy) for task in MANIFEST.tasks}
    failed = TaskState(
        status=TaskStatus.FAILED,
        healable=True,
        worker_attempts=1,
        last_failure_class="timeout",
        last_failure_signature="timeout:x",
    )
    spent = failed.model_copy(update={"worker_attempts": 2})
    decision = decide(retry_policy={"reset_tasks": ["A", "elsewhere"]})
    after = after_heal(
        decision,
        Grant(),
        WindowState(number=1, task_ids=["A", "B", "C"]),
        ["A", "B", "C"],
        {"A": failed, "B": failed, "C": spent},
        rules,
        batch_size=3,
        shrinks=False,
        epoch=0,
    )
    assert after.window is not None
    assert after.window.task_ids == ["A", "B"]
    assert after.window.healed_failures == {"A": "timeout:x"}
    assert (after.tasks["A"].worker_attempts, after.tasks["B"].worker_attempts) == (0, 1)
