"""A report of a run is bounded in each direction."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.thread_runs import REMARK_MAX, TASKS_MAX, ReportRunParams

RUN = {"projectId": "p", "runId": "r", "status": "RUNNING", "startedAt": "2026-01-01T00:00:00Z"}
TASK = {"id": "a", "status": "DONE", "attempts": 1}


def test_a_run_needs_little() -> None:
    report = ReportRunParams.model_validate(RUN)
    assert (report.counts, report.tasks, report.window) == ({}, [], None)


@pytest.mark.parametrize(
    "more",
    [
        {"status": "SLEEPING"},
        {"counts": {"LOST": 1}},
        {"counts": {"DONE": -1}},
        {"tasks": [TASK] * (TASKS_MAX + 1)},
        {"tasks": [TASK | {"problem": "x" * (REMARK_MAX + 1)}]},
        {"reason": "x" * (REMARK_MAX + 1)},
        {"startedAt": "yesterday"},
        {"spent": {"invocations": 1, "inputTokens": 0, "outputTokens": 0, "costUsd": -1}},
    ],
)
def test_more_than_that_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReportRunParams.model_validate(RUN | more)
