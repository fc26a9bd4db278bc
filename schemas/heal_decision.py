"""`heal_decision.v2`: what a healer proposes (agent-threader-v2 §7)."""

import json
from enum import StrEnum
from typing import Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from schemas.v2 import Reported, Version


class Decision(StrEnum):
    RETRY = "RETRY"
    ESCALATE = "ESCALATE"
    NOT_FIXABLE = "NOT_FIXABLE"


Target = Literal["shared_context", "task_prompt", "runtime_patch", "contract_hint"]

OPERATIONS: dict[Target, tuple[str, ...]] = {
    "shared_context": ("replace", "append"),
    "task_prompt": ("replace", "append"),
    "runtime_patch": ("merge",),
    "contract_hint": ("append", "merge"),
}
"""Text is replaced or appended, settings are merged, hints are only added (§7)."""


def _rule(target: Target) -> dict[str, JsonValue]:
    """The required content of a patch with this target, as JSON Schema."""
    kind = "object" if target == "runtime_patch" else "string"
    properties: dict[str, JsonValue] = {
        "operation": {"enum": list(OPERATIONS[target])},
        "content": {"type": kind},
    }
    rule: dict[str, JsonValue] = {"properties": properties}
    needed = {"shared_context": "path", "task_prompt": "task_id"}.get(target)
    if needed is not None:
        rule["required"] = [needed]
        properties[needed] = {"type": "string", "minLength": 1}
    return {"if": {"properties": {"target": {"const": target}}}, "then": rule}


class Patch(Reported):
    model_config = ConfigDict(json_schema_extra={"allOf": [_rule(target) for target in OPERATIONS]})

    target: Target
    operation: Literal["replace", "append", "merge"]
    path: str | None = None
    task_id: str | None = None
    content: str | dict[str, JsonValue]

    @model_validator(mode="after")
    def _fields_fit_target(self) -> Self:
        allowed = OPERATIONS[self.target]
        if self.operation not in allowed:
            wanted = f"{' or '.join(allowed)}, not {self.operation}"
            raise ValueError(f"a {self.target} patch takes the operation {wanted}")
        if self.target == "shared_context" and not self.path:
            raise ValueError(
                f"a shared_context patch needs a path; path is {json.dumps(self.path)}"
            )
        if self.target == "task_prompt" and not self.task_id:
            given = json.dumps(self.task_id)
            raise ValueError(f"a task_prompt patch needs a task_id; task_id is {given}")
        if (self.target == "runtime_patch") != isinstance(self.content, dict):
            is_settings = self.target == "runtime_patch"
            kinds = "an object, not a string" if is_settings else "a string, not an object"
            raise ValueError(f"content of a {self.target} patch should be {kinds}")
        return self


class Escalation(Reported):
    task_id: str
    reason: str = ""


class HealRetryPolicy(Reported):
    reset_tasks: list[str] | None = None
    retry_window: Literal["same_window", "shrink_window", "next_epoch"] = "same_window"


class HealDecision(Reported):
    contract_version: Version
    scope: Literal["task", "batch", "epoch"]
    decision: Decision = Field(strict=False)
    failure_class: str = Field(min_length=1)
    root_cause: str = Field(min_length=1)
    patches: list[Patch] = Field(max_length=1_000)
    learned_rule: str | None = None
    escalations: list[Escalation] = Field([])
    retry_policy: HealRetryPolicy = HealRetryPolicy()
