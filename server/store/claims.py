"""Claims of agents on repos: the one that holds, and those that lost to an earlier one (§5)."""

import sqlite3
from collections.abc import Iterator

import orjson

from server.domain.agents import same_agent
from server.domain.registers import RepoClaim
from server.store.sql import SQL

# On the hot path: run as text, without aiosql's own call.
_HOLDER: str = SQL.claim_of.sql
_LOST: str = SQL.lost_claims.sql


def holder(db: sqlite3.Connection, project_id: str, repo_id: str) -> RepoClaim | None:
    """The claim that holds."""
    row = db.execute(_HOLDER, {"project_id": project_id, "repo_id": repo_id}).fetchone()
    return RepoClaim(*row) if row else None


def every(db: sqlite3.Connection, project_id: str, repo_id: str) -> list[RepoClaim]:
    """The claim that holds, then those that came later than it."""
    held = holder(db, project_id, repo_id)
    place = {"project_id": project_id, "repo_id": repo_id}
    lost = [RepoClaim(*row) for row in db.execute(_LOST, place)]
    return lost if held is None else [held, *lost]


def claimed_by(db: sqlite3.Connection, project_id: str, repo_id: str, agent_id: str) -> bool:
    """Whether the agent has claimed the repo, in vain or not."""
    return any(same_agent(one.agent_id, agent_id) for one in every(db, project_id, repo_id))


def signers(db: sqlite3.Connection, project_id: str, own: str) -> Iterator[str]:
    """The nodes that have signed a claim in a project, in vain or not; `own` is this node."""
    for (kept,) in SQL.claim_signatures(db, project_id=project_id):
        yield own if kept is None else orjson.loads(kept)["node"]


def is_signed_by(db: sqlite3.Connection, project_id: str, node: str, own: str) -> bool:
    """Whether a node has signed a claim in a project, in vain or not; `own` is this node."""
    return any(same_agent(one, node) for one in signers(db, project_id, own))


def settle(db: sqlite3.Connection, project_id: str, repo_id: str, claims: list[RepoClaim]) -> None:
    """Keep exactly these claims of a repo, of which the first holds."""
    SQL.drop_lost_claims(db, project_id=project_id, repo_id=repo_id)
    for place, claim in enumerate(claims):
        put = SQL.put_lost_claim if place else SQL.put_claim
        put(db, project_id=project_id, repo_id=repo_id, **claim._asdict())
