"""The runs of the threader."""

from typing import Any

from schemas.base import stamp_of
from server.page.view import Page, PageCall, view

SILENT_AFTER = 300 * 1_000_000
"""Microseconds without a report after which a run that is under way may have died."""


@view("runs", "/ui/runs", title="Runs", kinds=("run",))
def runs(call: PageCall) -> Page:
    """The runs of the threader that report to this node."""
    query = call.query
    listed = call.ask(
        "cacp/run/list", projectId=query.get("project"), cursor=query.get("after"), limit=50
    )
    names = {
        project["projectId"]: project["name"]
        for project in call.ask("cacp/project/list", summary=True, limit=500)["projects"]
    }
    return {
        "runs": [
            run | {"project": names.get(run["projectId"], ""), "isSilent": is_silent(call, run)}
            for run in listed["runs"]
        ],
        "next": listed.get("nextCursor"),
    }


@view("run", "/ui/projects/{project_id}/runs/{run_id}", title="Run", kinds=("run",))
def run(call: PageCall) -> Page:
    """A run: its tasks, its windows, its rounds of healing."""
    got: Page = call.ask(
        "cacp/run/get",
        projectId=call.path["project_id"],
        runId=call.path["run_id"],
        agentId=call.query.get("agent"),
    )
    total = sum(got["counts"].values())
    return got | {
        "total": total,
        "moreTasks": total - len(got["tasks"]),
        "isSilent": is_silent(call, got),
    }


def is_silent(call: PageCall, run: dict[str, Any]) -> bool:
    """Whether a run that says it is under way has not reported for long."""
    silence = call.ctx.stamp - stamp_of(run["reportedAt"])
    return bool(run["status"] == "RUNNING" and silence > SILENT_AFTER)
