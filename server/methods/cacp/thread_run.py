"""cacp/run/report, list and get: the runs of the threader (agent-threader-v2; design-next N5)."""

from typing import Any

import orjson

from schemas.base import iso, present, stamp_of
from schemas.thread_runs import (
    GetRunParams,
    ListRunsParams,
    ListRunsResult,
    ReportRunParams,
    ReportRunResult,
    ThreadRun,
)
from server.domain.access import check_project
from server.domain.agents import identity
from server.domain.errors import Conflict, NotFound
from server.methods.base import (
    Context,
    cursor_after,
    open_project,
    page_of,
    parse_cursor,
    party,
    reads,
    writes,
)
from server.store import thread_runs
from server.store.thread_runs import RunRow

LATEST = (2**62, "")
_ROW = {"project_id", "run_id", "status", "started_at"}


@writes("cacp/run/report", ReportRunParams, ReportRunResult)
def report(ctx: Context, params: ReportRunParams) -> dict[str, Any]:
    """Tell the node how a run of the threader stands; the report replaces the one before it. For
    holders of a repo of the project. The node keeps the 200 runs of a project that reported last;
    they stay on this node."""
    project_id, caller = params.project_id, ctx.caller.agent_id
    party(ctx, project_id, open_project(ctx, project_id))
    body = params.model_dump(mode="json", by_alias=True, exclude=_ROW, exclude_none=True)
    for record in (*body["windows"], *body["heals"]):
        record["at"] = _utc(record["at"])
    row = RunRow(
        project_id,
        params.run_id,
        caller,
        params.status,
        _utc(params.started_at),
        ctx.stamp,
        orjson.dumps(body).decode(),
    )
    thread_runs.put(ctx.db, row, identity(caller))
    ctx.record("run", params.run_id, project_id, params.status.lower())
    return {"status": "reported"}


@reads("cacp/run/list", ListRunsParams, ListRunsResult, wide=True, reach="own")
def list_(ctx: Context, params: ListRunsParams) -> dict[str, Any]:
    """List the runs of the threader that report to this node, the one that reported last first,
    with their tasks by status."""
    only = ctx.caller.projects
    if params.project_id is not None:
        check_project(only, params.project_id)
        open_project(ctx, params.project_id)
    before, rows = parse_cursor(params.cursor, LATEST), list[RunRow]()
    while len(rows) <= params.limit:
        page = thread_runs.page(ctx.db, params.project_id, before, params.limit + 1)
        rows += [row for row in page if only is None or row.project_id in only]
        if len(page) <= params.limit:
            break
        before = page[-1].reported_at, page[-1].run_id
    shown, more = page_of(rows, params.limit, lambda row: cursor_after(row.reported_at, row.run_id))
    return {"runs": [_summary(row) for row in shown], **more}


@reads("cacp/run/get", GetRunParams, ThreadRun, wide=True)
def get(ctx: Context, params: GetRunParams) -> dict[str, Any]:
    """Return a run of the threader as it reported last: its tasks (those under way and in trouble
    first), its windows, its rounds of healing, and what it has used."""
    open_project(ctx, params.project_id)
    rows = thread_runs.named(ctx.db, params.project_id, params.run_id)
    if params.agent_id is not None:
        wanted = identity(params.agent_id)
        rows = [row for row in rows if identity(row.agent_id) == wanted]
    if not rows:
        raise NotFound(
            f"No run {params.run_id} has reported to this node; cacp/run/list lists those that "
            "have. A run reports when its manifest names this node under `node`",
            kind="run",
            runId=params.run_id,
        )
    if len(rows) > 1:
        raise Conflict(
            f"{len(rows)} agents have reported a run {params.run_id}: name one as agentId",
            reason="ambiguous_run",
            agentIds=[row.agent_id for row in rows],
        )
    body: dict[str, Any] = orjson.loads(rows[0].body)
    return body | _summary(rows[0])


def _utc(time: str) -> str:
    return iso(stamp_of(time))


def _summary(row: RunRow) -> dict[str, Any]:
    body = orjson.loads(row.body)
    return present(
        {
            "projectId": row.project_id,
            "runId": row.run_id,
            "agentId": row.agent_id,
            "status": row.status,
            "startedAt": row.started_at,
            "reportedAt": iso(row.reported_at),
            "reason": body.get("reason"),
            "counts": body["counts"],
        }
    )
