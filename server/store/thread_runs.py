"""The runs of the threader, as each reported last. They are this node's own, and not replicated."""

from typing import NamedTuple

from server.store.connection import Connection
from server.store.sql import SQL

KEPT = 200
"""The runs of a project that are kept, at most; the ones that reported last."""


class RunRow(NamedTuple):
    """A run's last report. `body` is JSON, `reported_at` a stamp."""

    project_id: str
    run_id: str
    agent_id: str
    status: str
    started_at: str
    reported_at: int
    body: str


def put(db: Connection, row: RunRow, agent: str) -> None:
    """Replace what the run of this agent's address reported before, and forget the oldest runs of
    its project."""
    SQL.put_thread_run(db, agent=agent, **row._asdict())
    SQL.drop_older_thread_runs(db, project_id=row.project_id, most=KEPT)


def page(
    db: Connection, project_id: str | None, before: tuple[int, str], limit: int
) -> list[RunRow]:
    """The runs that reported before a stamp and run id, the last one first."""
    rows = SQL.thread_runs(
        db, project_id=project_id, before=before[0], before_run=before[1], limit=limit
    )
    return [RunRow(*row) for row in rows]


def named(db: Connection, project_id: str, run_id: str) -> list[RunRow]:
    """The runs of this id, one for each agent that reports one; the last reported first."""
    return [RunRow(*row) for row in SQL.thread_runs_named(db, project_id=project_id, run_id=run_id)]
