"""Projects, their repos and the repos' holders."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from schemas.base import iso, present
from schemas.contract import AgreementPolicy
from schemas.verification import VerificationPolicy
from server.domain.agent_list import RepoOfAgent
from server.domain.terms import ProjectTerms
from server.store import context_packets, contracts
from server.store.connection import Connection
from server.store.sql import SQL, plain

ALIASES_MAX = 100
"""The most ids of foreign peers for one repo: as many as a node may have peers."""

# On the hot path: run as text, which is faster than aiosql's own call.
_MEMBERSHIP = plain(SQL.membership)


class ProjectHeader(NamedTuple):
    """A project's header register. `created_at` and `stamp` are stamps. `signature` is JSON of
    schemas.mesh.Signature; None for this node's own statement, "" for nobody's."""

    project_id: str
    name: str
    objective: str
    status: str
    agreement_policy: AgreementPolicy
    created_at: int
    stamp: int
    signature: str | None = None
    verification_policy: VerificationPolicy = "word"

    def body(self) -> dict[str, str | int]:
        """The members that are signed. A policy that verifies by word is absent, as in headers of
        releases that know no other."""
        fields = self._asdict()
        unsigned = {"project_id", "signature"}
        if self.verification_policy == "word":
            unsigned.add("verification_policy")
        return {name: fields[name] for name in fields if name not in unsigned}


class Repo(NamedTuple):
    """A repo of a project with its claim. `signature` covers the repo's description; its values are
    as in a header."""

    repo_id: str
    name: str
    role: str
    language: str
    relevant_paths: str
    url: str | None
    stamp: int
    agent_id: str | None = None
    agent_endpoint: str | None = None
    claimed_at: int | None = None
    signature: str | None = None

    def body(self) -> dict[str, Any]:
        """The members that are signed."""
        return {
            "name": self.name,
            "role": self.role,
            "language": self.language,
            "relevant_paths": orjson.loads(self.relevant_paths),
            "url": self.url,
            "stamp": self.stamp,
        }


class RepoMember(NamedTuple):
    """A repo and the agent that holds it, if any."""

    repo_id: str
    name: str
    agent_id: str | None
    role: str = ""


class Membership(NamedTuple):
    """The part of a project that decisions need."""

    name: str
    agreement_policy: AgreementPolicy
    members: tuple[RepoMember, ...]
    is_archived: bool = False
    verification_policy: VerificationPolicy = "word"

    @property
    def terms(self) -> ProjectTerms:
        """What versions freeze of a project."""
        roles = {member.repo_id: member.role for member in self.members}
        return ProjectTerms(self.verification_policy, roles)


def membership(db: Connection, project_id: str) -> Membership | None:
    rows = db.execute(_MEMBERSHIP, (project_id,)).fetchall()
    if not rows:
        return None
    members = tuple(RepoMember(*row[4:]) for row in rows if row[4] is not None)
    name, agreement, verification, state = rows[0][:4]
    return Membership(name, agreement, members, state == "archived", verification)


def header(db: Connection, project_id: str) -> ProjectHeader | None:
    row = SQL.project_header(db, project_id=project_id)
    return ProjectHeader(*row) if row else None


def headers_before(
    db: Connection,
    created_at: int,
    project_id: str,
    limit: int,
    *,
    archived: bool = True,
) -> list[ProjectHeader]:
    """Projects before the given position, the newest first; with `archived`, the archived ones too.

    The order is (created_at, project_id): the same on all nodes with the same projects, and new
    projects come before all pages that were read.
    """
    position = {"created_at": created_at, "project_id": project_id}
    rows = SQL.project_headers_before(db, **position, with_archived=archived, limit=limit)
    return [ProjectHeader(*row) for row in rows]


def headers_of(db: Connection, ids: Iterable[str]) -> list[ProjectHeader]:
    """The headers of those projects that are known here, the newest first."""
    headers = [known for id in ids if (known := header(db, id)) is not None]
    return sorted(headers, key=lambda header: (header.created_at, header.project_id), reverse=True)


def count(db: Connection, *, archived: bool = True) -> int:
    """The number of projects; with `archived`, the archived ones too."""
    return int(SQL.project_count(db, with_archived=archived))


def repos(db: Connection, project_id: str) -> list[Repo]:
    return [Repo(*row) for row in SQL.project_repos(db, project_id=project_id)]


def held_by(db: Connection, agent_id: str) -> list[str]:
    """The projects in which an agent holds a repo."""
    return [row[0] for row in SQL.projects_held_by(db, agent_id=agent_id)]


def held_repos(db: Connection, project_id: str | None) -> list[RepoOfAgent]:
    """Every repo with a holder, of all projects or of one."""
    return [RepoOfAgent(*row) for row in SQL.held_repos(db, project_id=project_id)]


def known_of(db: Connection, ids: Iterable[str]) -> set[str]:
    """The ids of those projects that are known here, the deleted ones included."""
    return {
        project_id
        for project_id in ids
        if SQL.is_known_project(db, project_id=project_id) is not None
    }


def insert(
    db: Connection,
    header: ProjectHeader,
    repos: list[Repo],
    *,
    created_by: str | None = None,
) -> None:
    """Add a project. `created_by` is the agent that created it at this node."""
    SQL.insert_project(db, **header._asdict(), created_by=created_by)
    for repo in repos:
        insert_repo(db, header.project_id, repo)


def update_header(db: Connection, header: ProjectHeader) -> None:
    SQL.update_project_header(db, **header._asdict())


def insert_repo(db: Connection, project_id: str, repo: Repo) -> None:
    SQL.insert_repo(db, project_id=project_id, **repo._asdict())


def update_repo(db: Connection, project_id: str, repo: Repo) -> None:
    """Update a repo's description; its claim stays."""
    fields = {name: value for name, value in repo._asdict().items() if "agent" not in name}
    SQL.update_repo(
        db, project_id=project_id, **{n: v for n, v in fields.items() if n != "claimed_at"}
    )


def update_claim(
    db: Connection,
    project_id: str,
    repo_id: str,
    agent_id: str,
    agent_endpoint: str | None,
    claimed_at: int,
) -> None:
    """Claim a repo for an agent, or renew its claim. Without an endpoint, the former one stays."""
    SQL.update_claim(
        db,
        project_id=project_id,
        repo_id=repo_id,
        agent_id=agent_id,
        agent_endpoint=agent_endpoint,
        claimed_at=claimed_at,
    )


def keep_lost_claim(
    db: Connection,
    project_id: str,
    repo_id: str,
    agent_id: str,
    agent_endpoint: str | None,
    claimed_at: int,
) -> None:
    """Record a claim that lost to an earlier one (design §5)."""
    SQL.insert_claim_conflict(
        db,
        project_id=project_id,
        repo_id=repo_id,
        agent_id=agent_id,
        agent_endpoint=agent_endpoint,
        claimed_at=claimed_at,
    )


def add_alias(db: Connection, project_id: str, alias: str, repo_id: str) -> bool:
    """Store a foreign peer's id for a repo. False when the repo has ALIASES_MAX already."""
    known = resolve_alias(db, project_id, alias)
    at = {"project_id": project_id, "alias": alias, "repo_id": repo_id}
    return known is not None or bool(SQL.insert_alias(db, **at, most=ALIASES_MAX))


def resolve_alias(db: Connection, project_id: str, alias: str) -> str | None:
    return SQL.alias_repo(db, project_id=project_id, alias=alias)  # type: ignore[no-any-return]


def whole(db: Connection, header: ProjectHeader) -> dict[str, Any]:
    """The Project object, with its contracts and packets as JSON fragments."""
    members = repos(db, header.project_id)
    updated_at = _totals(db, header, members).updated_at
    return bare(header, members) | {
        "contracts": contracts.documents(db, header.project_id),
        "context_history": context_packets.documents(db, header.project_id),
        "updated_at": iso(updated_at),
    }


def bare(header: ProjectHeader, repos: list[Repo]) -> dict[str, Any]:
    """The Project object without its contracts and context, which are sent separately."""
    return {
        "project_id": header.project_id,
        "name": header.name,
        "objective": header.objective,
        "status": header.status,
        "agreement_policy": header.agreement_policy,
        **_unless_word(header),
        "repos": [repo_context(repo) for repo in repos],
        "contracts": [],
        "context_history": [],
        "created_at": iso(header.created_at),
        "updated_at": iso(_own_time(header, repos)),
    }


def _unless_word(header: ProjectHeader) -> dict[str, str]:
    """The verification policy as a member; none for the specification's own, which foreign peers
    expect."""
    policy = header.verification_policy
    return {} if policy == "word" else {"verification_policy": policy}


def summary(db: Connection, header: ProjectHeader) -> dict[str, Any]:
    """The short form of a project, for lists."""
    members = repos(db, header.project_id)
    totals = _totals(db, header, members)
    return {
        "projectId": header.project_id,
        "name": header.name,
        "status": header.status,
        "repoCount": len(members),
        "contractCount": totals.contracts,
        "verifiedCount": totals.verified,
        "waitingCount": SQL.project_waiting(db, project_id=header.project_id),
        "createdAt": iso(header.created_at),
        "updatedAt": iso(totals.updated_at),
    }


def outline(
    db: Connection, header: ProjectHeader, after: str, limit: int
) -> tuple[dict[str, Any], str | None]:
    """A project with the short forms of its contracts after the id `after`; and the last of their
    ids, if more follow."""
    members = repos(db, header.project_id)
    totals = _totals(db, header, members)
    summaries = contracts.summaries(
        db, header.project_id, after=after, status=None, type=None, limit=limit + 1
    )
    shown = {
        "projectId": header.project_id,
        "name": header.name,
        "objective": header.objective,
        "status": header.status,
        "agreementPolicy": header.agreement_policy,
        "verificationPolicy": header.verification_policy,
        "repos": [repo_context(repo) for repo in members],
        "contracts": summaries[:limit],
        "contractCount": totals.contracts,
        "contextCount": SQL.project_packet_count(db, project_id=header.project_id),
        "createdAt": iso(header.created_at),
        "updatedAt": iso(totals.updated_at),
    }
    return shown, summaries[limit - 1]["contractId"] if len(summaries) > limit else None


class _Totals(NamedTuple):
    """A project's contracts, how many of them are verified, and its largest stamp."""

    contracts: int
    verified: int
    updated_at: int


def _totals(db: Connection, header: ProjectHeader, members: list[Repo]) -> _Totals:
    contract_count, contract_time, verified = SQL.project_counts(db, project_id=header.project_id)
    packet_time = SQL.project_packet_time(db, project_id=header.project_id)
    newest = max(_own_time(header, members), contract_time or 0, packet_time or 0)
    return _Totals(contract_count, verified, newest)


def _own_time(header: ProjectHeader, repos: list[Repo]) -> int:
    return max(header.stamp, *(repo.claimed_at or repo.stamp for repo in repos), 0)


def repo_context(repo: Repo) -> dict[str, Any]:
    """The RepoContext object."""
    context = {
        "repo_id": repo.repo_id,
        "name": repo.name,
        "role": repo.role,
        "language": repo.language,
        "agent_id": repo.agent_id,
        "agent_endpoint": repo.agent_endpoint,
        "relevant_paths": orjson.Fragment(repo.relevant_paths),
        "url": repo.url,
    }
    return present(context)
