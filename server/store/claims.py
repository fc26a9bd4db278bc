"""Claims of agents on repos: the one that holds, and those that lost to it (design §5)."""

from collections.abc import Callable, Iterator

from server.domain.agents import identity, same_agent
from server.domain.authorship import signer_of
from server.domain.registers import (
    ClaimRelease,
    RepoClaim,
    StatedRelease,
    is_released,
    releases_that_count,
)
from server.domain.registers import settle as settled_claims
from server.store.connection import Connection
from server.store.sql import SQL

# On the hot path: run as text, which is faster than aiosql's own call.
_HOLDER: str = SQL.claim_of.sql
_LOST: str = SQL.lost_claims.sql


def holder(db: Connection, project_id: str, repo_id: str) -> RepoClaim | None:
    """The claim that holds."""
    row = db.execute(_HOLDER, {"project_id": project_id, "repo_id": repo_id}).fetchone()
    return RepoClaim(*row) if row else None


def every(db: Connection, project_id: str, repo_id: str) -> list[RepoClaim]:
    """All claims on a repo, the one that holds first."""
    held = holder(db, project_id, repo_id)
    place = {"project_id": project_id, "repo_id": repo_id}
    lost = [RepoClaim(*row) for row in db.execute(_LOST, place)]
    return lost if held is None else [held, *lost]


def claimed_by(db: Connection, project_id: str, repo_id: str, agent_id: str) -> bool:
    """Whether the agent has claimed the repo, even if it lost."""
    return any(same_agent(claim.agent_id, agent_id) for claim in every(db, project_id, repo_id))


def signers(db: Connection, project_id: str, own: str) -> Iterator[str]:
    """The nodes that have signed a claim in a project, including lost ones; `own` is this node."""
    for (kept,) in SQL.claim_signatures(db, project_id=project_id):
        yield signer_of(kept, own)


def is_signed_by(db: Connection, project_id: str, node: str, own: str) -> bool:
    """Whether a node has signed a claim in a project, even a lost one; `own` is this node."""
    return any(same_agent(signer, node) for signer in signers(db, project_id, own))


def releases(db: Connection, project_id: str, repo_id: str) -> dict[str, ClaimRelease]:
    """The releases that count of claims on a repo, by agent."""
    rows = SQL.releases_of_repo(db, project_id=project_id, repo_id=repo_id)
    return {row[0]: ClaimRelease(*row) for row in rows}


def is_released_from(db: Connection, project_id: str, repo_id: str, agent_id: str) -> bool:
    """Whether a repo was released from an agent at some time."""
    return identity(agent_id) in releases(db, project_id, repo_id)


def stated_releases(db: Connection, project_id: str, repo_id: str) -> list[StatedRelease]:
    """What each node has stated of claims on a repo, whether it counts or not."""
    rows = SQL.stated_releases_of_repo(db, project_id=project_id, repo_id=repo_id)
    return [StatedRelease(row[0], ClaimRelease(*row[1:])) for row in rows]


def stated_in(db: Connection, project_id: str) -> list[tuple[str, StatedRelease]]:
    """What each node has stated of claims in a project, each with its repo."""
    rows = SQL.stated_releases_of_project(db, project_id=project_id)
    return [(row[0], StatedRelease(row[1], ClaimRelease(*row[2:]))) for row in rows]


def state_release(
    db: Connection, project_id: str, repo_id: str, node: str, release: ClaimRelease
) -> None:
    """Store a node's release, in place of its earlier one of the same agent, and settle the
    claims."""
    place = {"project_id": project_id, "repo_id": repo_id, "node": identity(node)}
    SQL.put_stated_release(db, **place, **release._asdict())
    settle(db, project_id, repo_id, every(db, project_id, repo_id))


def claim_anew(
    db: Connection,
    project_id: str,
    repo_id: str,
    agent_id: str,
    agent_endpoint: str | None,
    after: Callable[[int], int],
) -> None:
    """Claim a repo for an agent, or renew its claim. A claim that was released is replaced by one
    that is later than the release. `after` gives a stamp after another."""
    ended = releases(db, project_id, repo_id)
    known = every(db, project_id, repo_id)
    own = next((claim for claim in known if same_agent(claim.agent_id, agent_id)), None)
    release = ended.get(identity(agent_id))
    stamp = after(max(own.renewed_at if own else 0, release.released_at if release else 0))
    claimed_at, endpoint = stamp, agent_endpoint
    if own is not None and not is_released(own, ended):
        claimed_at, endpoint = own.claimed_at, agent_endpoint or own.agent_endpoint
    new = RepoClaim(agent_id, endpoint, claimed_at, stamp)
    settle(db, project_id, repo_id, [*known, new])


def settle(
    db: Connection, project_id: str, repo_id: str, claims: list[RepoClaim]
) -> list[RepoClaim]:
    """Replace the claims on a repo by one for each agent, which are returned. The first one holds
    the repo, unless it is released."""
    place = {"project_id": project_id, "repo_id": repo_id}
    ended = releases_that_count(project_id, claims, stated_releases(db, project_id, repo_id))
    SQL.drop_releases_of_repo(db, **place)
    for release in ended.values():
        SQL.put_release(db, **place, **release._asdict())
    settled = settled_claims(claims, ended)
    SQL.drop_lost_claims(db, **place)
    held = settled[:1] if settled and not is_released(settled[0], ended) else []
    if not held:
        SQL.clear_claim(db, **place)
    for claim in held:
        SQL.put_claim(db, **place, **claim._asdict())
    for claim in settled[len(held) :]:
        SQL.put_lost_claim(db, **place, **claim._asdict())
    return settled
