"""`heal_decision.v2` (agent-threader-v2 §7)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.heal_decision import HealDecision, Patch

EXAMPLE: dict[str, Any] = {
    "contract_version": "2.0",
    "scope": "batch",
    "decision": "RETRY",
    "failure_class": "prompt_gap",
    "root_cause": "Shared context omitted the import convention needed by multiple tasks.",
    "patches": [
        {
            "target": "shared_context",
            "operation": "append",
            "path": "_shared-context.md",
            "content": "Always include the cn() import rule.",
        },
        {
            "target": "task_prompt",
            "operation": "replace",
            "task_id": "WP-017",
            "path": "prompts/WP-017.md",
            "content": "Use the shared import convention and emit TASK_RESULT_V2.",
        },
        {
            "target": "runtime_patch",
            "operation": "merge",
            "content": {"timeout_sec": 1200, "current_batch_size": 2},
        },
        {
            "target": "contract_hint",
            "operation": "append",
            "task_id": "WP-017",
            "content": "Return exactly one TASK_RESULT_V2 block at end of output.",
        },
    ],
    "learned_rule": "When GTS tasks fail in a group, patch shared context first.",
    "retry_policy": {"reset_tasks": ["WP-017", "WP-018"], "retry_window": "same_window"},
    "escalations": [],
}


def test_the_specifications_example_is_valid() -> None:
    assert len(HealDecision.model_validate(EXAMPLE).patches) == 4


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ({"target": "product_file", "operation": "replace", "content": "x"}, "target"),
        ({"target": "shared_context", "operation": "append", "content": "x"}, "needs a path"),
        ({"target": "task_prompt", "operation": "append", "content": "x"}, "needs a task_id"),
        (
            {"target": "runtime_patch", "operation": "replace", "content": {}},
            "operation merge, not replace",
        ),
        ({"target": "runtime_patch", "operation": "merge", "content": "x"}, "an object"),
        ({"target": "contract_hint", "operation": "append", "content": {}}, "a string"),
    ],
)
def test_fields_fit_the_target(patch: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Patch.model_validate(patch)
