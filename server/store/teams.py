"""Teamspaces, their members, tasks and logs (acp-canonical §8)."""

from typing import Any, NamedTuple

import orjson

from schemas.teamspace import TeamRole
from server.domain.acp.handoff import Ownership
from server.store import messages
from server.store.connection import Connection
from server.store.messages import MessageRow
from server.store.sql import SQL


class Team(NamedTuple):
    """A teamspace. Times are stamps."""

    team: str
    name: str
    purpose: str
    status: Any
    created_by: str
    created_at: int
    closed_at: int | None


class TaskRow(NamedTuple):
    """A task. `chain` is JSON of its owners in order, the present one last. `assigned` is the agent
    that a coordinator last made its owner."""

    task_id: str
    team: str | None
    title: str
    kind: Any
    high_risk: int
    status: Any
    chain: str
    block_code: str | None
    block_detail: str | None
    assigned: str | None

    @property
    def owned(self) -> Ownership | None:
        owners = orjson.loads(self.chain)
        return Ownership(tuple(owners)) if owners else None


def find(db: Connection, team: str) -> Team | None:
    row = SQL.team(db, team=team)
    return Team(*row) if row else None


def insert(db: Connection, team: str, name: str, purpose: str, created_by: str, stamp: int) -> None:
    SQL.insert_team(
        db, team=team, name=name, purpose=purpose, created_by=created_by, created_at=stamp
    )


def close(db: Connection, team: str, stamp: int) -> None:
    SQL.close_team(db, team=team, at=stamp)


def members(db: Connection, team: str) -> dict[str, TeamRole]:
    """Each member's address and role."""
    return dict(SQL.team_members(db, team=team))


def put_member(db: Connection, team: str, agent_id: str, role: TeamRole) -> None:
    SQL.put_team_member(db, team=team, agent_id=agent_id, role=role)


def drop_member(db: Connection, team: str, agent_id: str) -> None:
    SQL.drop_team_member(db, team=team, agent_id=agent_id)


def of_agent(db: Connection, agent_id: str) -> list[tuple[str, str, str, TeamRole]]:
    """The teamspaces of an agent: id, name, status, and the agent's role."""
    return list(SQL.teams_of(db, agent_id=agent_id))


def every(db: Connection) -> list[str]:
    """The names of all teamspaces."""
    return [team for (team,) in SQL.teams_of_everyone(db)]


def is_coordinator(db: Connection, agent_id: str) -> bool:
    """Whether the agent coordinates any active teamspace."""
    return bool(SQL.coordinates_any(db, agent_id=agent_id))


# --- tasks --------------------------------------------------------------------------------------


def task(db: Connection, task_id: str) -> TaskRow | None:
    row = SQL.task(db, task_id=task_id)
    return TaskRow(*row) if row else None


def tasks(db: Connection, team: str) -> list[TaskRow]:
    return [TaskRow(*row) for row in SQL.tasks_of(db, team=team)]


def insert_task(
    db: Connection,
    task_id: str,
    *,
    team: str | None,
    title: str,
    kind: str,
    high_risk: bool,
    created_by: str,
    stamp: int,
) -> None:
    """Insert a task without an owner."""
    SQL.insert_task(
        db,
        task_id=task_id,
        team=team,
        title=title,
        kind=kind,
        high_risk=int(high_risk),
        created_by=created_by,
        created_at=stamp,
    )


def drop_task(db: Connection, task_id: str) -> None:
    SQL.drop_task(db, task_id=task_id)


def assign(db: Connection, task_id: str, agent: str, stamp: int) -> None:
    """Make an agent the task's owner, as a coordinator's assignment, which starts a new chain."""
    SQL.assign_task(db, task_id=task_id, agent=agent, at=stamp)
    put_owner(db, task_id, Ownership((agent,)))


def put_owner(db: Connection, task_id: str, owned: Ownership | None) -> None:
    """Store the owner of a task."""
    chain = orjson.dumps(owned.chain if owned is not None else []).decode()
    SQL.put_task_chain(db, task_id=task_id, chain=chain)


def put_team(db: Connection, task_id: str, team: str) -> None:
    """Move a task from outside into a teamspace."""
    SQL.put_task_team(db, task_id=task_id, team=team)


def put_task_status(
    db: Connection,
    task_id: str,
    status: str,
    code: str | None = None,
    detail: str | None = None,
) -> None:
    SQL.put_task_status(db, task_id=task_id, status=status, block_code=code, block_detail=detail)


# --- logs ---------------------------------------------------------------------------------------


def log(db: Connection, team: str, name: str, line: dict[str, Any]) -> None:
    """Append to a log of §8.2. Keys are sorted, so that equal lines are equal bytes."""
    text = orjson.dumps(line, option=orjson.OPT_SORT_KEYS).decode()
    SQL.append_team_log(db, team=team, log=name, line=text)


def log_message(db: Connection, message: MessageRow) -> None:
    """Append a teamspace's message to its log, as it was sent."""
    assert message.team is not None
    line = orjson.loads(orjson.dumps(messages.envelope(message)))
    log(db, message.team, "messages", {"at": message.created_at, "event": "send", "message": line})


def log_after(db: Connection, team: str, name: str, seq: int, limit: int) -> list[tuple[int, str]]:
    """Lines after `seq`, as (seq, JSON)."""
    return list(SQL.team_log_after(db, team=team, log=name, seq=seq, limit=limit))


def log_heads(db: Connection) -> list[tuple[str, str, int]]:
    """The teamspace, name and last seq of each log that has lines."""
    return list(SQL.team_log_heads(db))


def log_newest(db: Connection) -> int:
    """The largest seq of all logs; 0 when they are empty."""
    return int(SQL.team_log_newest(db))
