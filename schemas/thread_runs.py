"""cacp/run/report, list and get: the runs of the threader that report to a node (an extension of
CACP 2.0)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas.base import Count, Cursor, Identifier, Params, Result, Timestamp

TASKS_MAX = 300
ROUNDS_MAX = 50
RunOutcome = Literal["RUNNING", "COMPLETED", "ABORTED"]
RunTaskStatus = Literal["PENDING", "RUNNING", "DONE", "BLOCKED", "FAILED", "ESCALATED"]
REMARK_MAX = 500
Remark = Annotated[str, StringConstraints(max_length=REMARK_MAX)]
"""One line of up to 500 characters."""


class RunTask(Result):
    """A task as it stands. `problem`: why it is not done; `said`: the worker's own words."""

    id: Identifier
    status: RunTaskStatus
    attempts: Count
    contract_id: Identifier | None = None
    problem: Remark | None = None
    said: Remark | None = None


class RunWindow(Result):
    """The window under way: its number, its pass (1, and one more for each retry), its tasks."""

    number: Count
    attempt: Count
    size: Count
    heal_rounds: Count


class RunWindowRecord(Result):
    """A judged pass of a window."""

    number: Count
    attempt: Count
    size: Count
    done: Count
    failure_rate: Annotated[float, Field(ge=0, le=1)]
    verdict: Remark
    at: Timestamp


class RunHeal(Result):
    """A round of healing. `converging` is absent until the retry has settled."""

    number: Count
    window: Count
    failed: Count
    decision: Remark
    rule: Remark | None = None
    converging: bool | None = None
    at: Timestamp


class RunSpent(Result):
    """What the invocations of agents used, as far as their logs report it."""

    invocations: Count
    input_tokens: Count
    output_tokens: Count
    cost_usd: Annotated[float, Field(ge=0)]


class ReportRunParams(Params):
    """A run as it stands now; it replaces the report before it.

    `counts`: tasks by status. `tasks`: those under way and in trouble first, at most 300 in all.
    `reason`: why it was aborted, or why it waits. `batch_size`: tasks of the next window.
    """

    project_id: Identifier
    run_id: Identifier
    status: RunOutcome
    started_at: Timestamp
    reason: Remark | None = None
    batch_size: Count = 0
    counts: dict[RunTaskStatus, Count] = {}
    tasks: Annotated[list[RunTask], Field(max_length=TASKS_MAX)] = []
    window: RunWindow | None = None
    windows: Annotated[list[RunWindowRecord], Field(max_length=ROUNDS_MAX)] = []
    heals: Annotated[list[RunHeal], Field(max_length=ROUNDS_MAX)] = []
    spent: RunSpent | None = None


class ReportRunResult(Result):
    status: Literal["reported"]


class ThreadRunSummary(Result):
    """A run, as its last report says. `agent_id` reported it, at `reported_at`."""

    project_id: Identifier
    run_id: Identifier
    agent_id: Identifier
    status: RunOutcome
    started_at: Timestamp
    reported_at: Timestamp
    reason: Remark | None = None
    counts: dict[RunTaskStatus, Count]


class ListRunsParams(Params):
    """`project_id`: only runs of this project. The one that reported last comes first."""

    project_id: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class ListRunsResult(Result):
    runs: list[ThreadRunSummary]
    next_cursor: Cursor | None = None


class GetRunParams(Params):
    """`agent_id` is needed when several agents have reported a run of this id."""

    project_id: Identifier
    run_id: Identifier
    agent_id: Identifier | None = None


class ThreadRun(ThreadRunSummary):
    """A run in full."""

    batch_size: Count
    tasks: list[RunTask]
    window: RunWindow | None = None
    windows: list[RunWindowRecord]
    heals: list[RunHeal]
    spent: RunSpent | None = None
