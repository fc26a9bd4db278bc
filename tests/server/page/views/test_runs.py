"""The runs of the threader, as pages."""

from types import SimpleNamespace
from typing import Any

import pytest

from schemas.base import iso
from server.page.views.runs import SILENT_AFTER, is_silent
from tests.support.node import Node
from tests.support.team import Team

BROWSER = {"accept": "text/html"}
NOW = 1_800_000_000_000_000


@pytest.mark.parametrize(
    ("status", "silence", "silent"),
    [
        ("RUNNING", 0, False),
        ("RUNNING", SILENT_AFTER + 1, True),
        ("COMPLETED", SILENT_AFTER + 1, False),
    ],
)
def test_a_run_that_stopped_reporting_is_silent(status: str, silence: int, silent: bool) -> None:
    call: Any = SimpleNamespace(ctx=SimpleNamespace(stamp=NOW))
    assert is_silent(call, {"status": status, "reportedAt": iso(NOW - silence)}) is silent


def test_a_run_is_shown_with_its_tasks_windows_and_heals(node: Node, team: Team) -> None:
    team.backend(
        "run/report",
        runId="nightly",
        status="RUNNING",
        startedAt="2026-01-01T00:00:00Z",
        reason="waits <b>5 min</b>",
        counts={"DONE": 3, "FAILED": 1},
        tasks=[{"id": "api", "status": "FAILED", "attempts": 2, "problem": "<script>x"}],
        window={"number": 2, "attempt": 1, "size": 3, "healRounds": 1},
        heals=[
            {
                "number": 1,
                "window": 2,
                "failed": 1,
                "decision": "RETRY",
                "rule": "Say how.",
                "at": "2026-01-01T00:00:00Z",
            }
        ],
        spent={"invocations": 4, "inputTokens": 12345, "outputTokens": 67, "costUsd": 0.5},
    )
    listed = node.http.get("/ui/runs", headers=BROWSER).text
    assert f"/ui/projects/{team.project}/runs/nightly" in listed
    assert "waits &lt;b&gt;5 min&lt;/b&gt;" in listed
    shown = node.http.get(f"/ui/projects/{team.project}/runs/nightly", headers=BROWSER).text
    for words in ("3 done", "1 failed", "&lt;script&gt;x", "Say how.", "12,345 input", "$0.50"):
        assert words in shown
    assert "and 3 more, which are pending or done" in shown
    twin = node.http.get(f"/ui/projects/{team.project}/runs/nightly.json").json()
    assert twin["counts"] == {"DONE": 3, "FAILED": 1}


def test_a_run_that_is_not_known_is_a_page_that_says_so(node: Node, team: Team) -> None:
    answer = node.http.get(f"/ui/projects/{team.project}/runs/none", headers=BROWSER)
    assert answer.status_code == 404
    assert "No run none has reported" in answer.text
