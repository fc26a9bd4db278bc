"""`manifest.v2` (agent-threader-v2 §7)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.manifest import Bound, HealSchedule, Manifest, ManifestPolicy

EXAMPLE: dict[str, Any] = {
    "manifest_version": "2.0",
    "run_id": "run-20260320-001",
    "tasks": [
        {
            "id": "WP-017",
            "prompt_ref": "prompts/WP-017.md",
            "context_refs": ["_shared-context.md"],
            "depends_on": [],
            "priority": 1,
            "timeout_sec": 900,
            "verify_profile": "build_and_test",
            "retry_policy": {
                "max_attempts": 2,
                "retry_on": ["prompt_gap", "timeout", "transient_infra"],
            },
            "metadata": {"component": "button"},
        }
    ],
}


def test_the_specifications_example_is_valid() -> None:
    manifest = Manifest.model_validate(EXAMPLE)
    assert manifest.tasks[0].retry_policy.max_attempts == 2


def test_defaults_are_the_specifications() -> None:
    """§4 "Default Configuration", §6 "PBH Defaults"."""
    policy = ManifestPolicy()
    assert policy.heal_schedule is HealSchedule.AUTO
    assert (policy.concurrency, policy.batch_size) == (1, 5)
    assert policy.failure_threshold == 0.2
    assert policy.max_worker_attempts_per_task == 2
    assert policy.max_heal_rounds_per_window == 2
    assert policy.max_total_heal_rounds == 8
    assert policy.signature_repeat_limit == 2


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"manifest_version": "1.0"}, "manifest_version"),
        ({"surprise": 1}, "surprise"),
        ({"tasks": [{**EXAMPLE["tasks"][0], "timeout_sec": 0}]}, "timeout_sec"),
        ({"tasks": [{**EXAMPLE["tasks"][0], "id": "../x"}]}, "id"),
        ({"policy": {"heal_schedule": "sometimes"}}, "heal_schedule"),
        ({"policy": {"runtime_limits": {"model": {"min": 1, "max": 2}}}}, "runtime_limits"),
        ({"worker": {"adapter": "telepathy"}}, "adapter"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError, match=where):
        Manifest.model_validate({**EXAMPLE, **change})


def test_bounds_are_ordered() -> None:
    with pytest.raises(ValidationError, match="must not exceed"):
        Bound(min=2, max=1)


@pytest.mark.parametrize("value", ["5", True, "5s"])
def test_a_number_is_a_number(value: object) -> None:
    task = {**EXAMPLE["tasks"][0], "timeout_sec": value}
    with pytest.raises(ValidationError, match="valid number"):
        Manifest.model_validate({**EXAMPLE, "tasks": [task]})


def test_a_priority_may_lie_between_two() -> None:
    task = {**EXAMPLE["tasks"][0], "priority": 1.5}
    assert Manifest.model_validate({**EXAMPLE, "tasks": [task]}).tasks[0].priority == 1.5
