"""`task_result.v2` (agent-threader-v2 §7)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.task_result import TaskResult, Write

BASE: dict[str, Any] = {
    "contract_version": "2.0",
    "task_id": "WP-017",
    "status": "DONE",
    "summary": "Implemented focus-visible fix and updated tests.",
}


def test_optional_fields_are_optional_and_unknown_ones_ignored() -> None:
    result = TaskResult.model_validate({**BASE, "mood": "great"})
    assert result.writes == []
    assert result.evidence.commands == []


@pytest.mark.parametrize(
    "write",
    [
        {"path": "a", "op": "delete", "encoding": "utf8", "content": "x"},
        {"path": "a", "op": "create", "encoding": "latin1", "content": "x"},
        {"path": "a", "op": "create", "content": "x"},
        {"path": "a", "op": "create", "encoding": "utf8"},
        {"path": "", "op": "create", "encoding": "utf8", "content": "x"},
    ],
)
def test_writes_are_checked(write: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Write.model_validate(write)
