"""Claims of agents on repos: the one that holds, and those that lost to it (design §5)."""

import sqlite3
from collections.abc import Iterator

from server.domain.agents import same_agent
from server.domain.authorship import signer_of
from server.domain.registers import RepoClaim
from server.store.sql import SQL

# On the hot path: run as text, which is faster than aiosql's own call.
_HOLDER: str = SQL.claim_of.sql
_LOST: str = SQL.lost_claims.sql


def holder(db: sqlite3.Connection, project_id: str, repo_id: str) -> RepoClaim | None:
    """The claim that holds."""
    row = db.execute(_HOLDER, {"project_id": project_id, "repo_id": repo_id}).fetchone()
    return RepoClaim(*row) if row else None


def every(db: sqlite3.Connection, project_id: str, repo_id: str) -> list[RepoClaim]:
    """All claims on a repo, the one that holds first."""
    held = holder(db, project_id, repo_id)
    place = {"project_id": project_id, "repo_id": repo_id}
    lost = [RepoClaim(*row) for row in db.execute(_LOST, place)]
    return lost if held is None else [held, *lost]


def claimed_by(db: sqlite3.Connection, project_id: str, repo_id: str, agent_id: str) -> bool:
    """Whether the agent has claimed the repo, even if it lost."""
    return any(same_agent(claim.agent_id, agent_id) for claim in every(db, project_id, repo_id))


def signers(db: sqlite3.Connection, project_id: str, own: str) -> Iterator[str]:
    """The nodes that have signed a claim in a project, including lost ones; `own` is this node."""
    for (kept,) in SQL.claim_signatures(db, project_id=project_id):
        yield signer_of(kept, own)


def is_signed_by(db: sqlite3.Connection, project_id: str, node: str, own: str) -> bool:
    """Whether a node has signed a claim in a project, even a lost one; `own` is this node."""
    return any(same_agent(signer, node) for signer in signers(db, project_id, own))


def settle(db: sqlite3.Connection, project_id: str, repo_id: str, claims: list[RepoClaim]) -> None:
    """Replace the claims on a repo; the first one holds."""
    SQL.drop_lost_claims(db, project_id=project_id, repo_id=repo_id)
    for place, claim in enumerate(claims):
        put = SQL.put_lost_claim if place else SQL.put_claim
        put(db, project_id=project_id, repo_id=repo_id, **claim._asdict())
