"""Projects, repos and claims as foreign peers show them (design §5, §8)."""

import orjson

from peers.foreign import HEADER
from schemas.sync import PeerProject, PeerRepo
from server.domain.agents import same_agent
from server.domain.endpoints import check_endpoint
from server.domain.errors import Refusal
from server.domain.identifiers import repo_id_for
from server.methods.base import Context
from server.methods.sync.sending_peer import SendingPeer
from server.store import claims, peers, projects
from server.store.projects import Repo, RepoMember

NO_REPO = "The peer holds no repo of this project"


def create_project(ctx: Context, source: SendingPeer, shown: PeerProject) -> None:
    """Add a project that is unknown here, without repos."""
    header = projects.ProjectHeader(
        project_id=shown.project_id,
        name=shown.name,
        objective=shown.objective,
        status=shown.status,
        agreement_policy="any",
        created_at=source.past(shown.created_at),
        stamp=ctx.stamp,
    )
    projects.insert(ctx.db, header, [])
    ctx.record("project", shown.project_id, shown.project_id, "created")


def merge_header(source: SendingPeer, shown: PeerProject) -> bool:
    """Apply what the peer changed in the header since the last exchange. A member that it leaves
    out is unchanged."""
    ctx, project_id = source.ctx, shown.project_id
    if not source.is_new and source.repo_id is None:
        source.skip("project", project_id, NO_REPO)
        return False
    members = shown.model_dump(include=set(HEADER), exclude_unset=True)
    kept = peers.exchanged(ctx.db, source.agent_id, project_id)
    before = orjson.loads(kept) if kept is not None else {}
    exchanged = orjson.dumps(before | members).decode()
    peers.put_exchanged(ctx.db, source.agent_id, project_id, exchanged)
    header = projects.header(ctx.db, project_id)
    if header is None:
        return False
    changed = {
        name: value
        for name, value in members.items()
        if value not in (before.get(name, value), getattr(header, name))
    }
    if not changed:
        return False
    header = header._replace(**changed, stamp=ctx.after(header.stamp), signature=None)
    projects.update_header(ctx.db, header)
    ctx.record("project", project_id, project_id, header.status)
    return True


def merge_repo(source: SendingPeer, shown: PeerRepo) -> bool:
    """Add a repo that is unknown here, and the peer's claim on its own."""
    ctx, project_id = source.ctx, source.project_id
    member = next((member for member in source.project.members if member.name == shown.name), None)
    changed = member is None
    if member is None:
        if not source.is_new and source.repo_id is None:
            source.skip("repo", shown.repo_id, NO_REPO)
            return False
        member = _add_repo(source, shown)
    is_alias = all(shown.repo_id != known.repo_id for known in source.project.members)
    if is_alias and not projects.add_alias(ctx.db, project_id, shown.repo_id, member.repo_id):
        source.skip("repo", shown.repo_id, f"Repo {member.name} has too many ids already")
    if shown.agent_id is not None and same_agent(shown.agent_id, source.agent_id):
        changed |= _merge_claim(source, member, shown.agent_endpoint)
    return changed


def _add_repo(source: SendingPeer, shown: PeerRepo) -> RepoMember:
    ctx, project_id = source.ctx, source.project_id
    repo = Repo(
        repo_id=repo_id_for(project_id, shown.name),
        name=shown.name,
        role=shown.role,
        language=shown.language,
        relevant_paths=orjson.dumps(shown.relevant_paths or []).decode(),
        url=shown.url,
        stamp=ctx.stamp,
    )
    projects.insert_repo(ctx.db, project_id, repo)
    ctx.record("repo", repo.repo_id, project_id, "added")
    source.members_changed()
    return RepoMember(repo.repo_id, repo.name, None)


def _merge_claim(source: SendingPeer, member: RepoMember, endpoint: str | None) -> bool:
    """The peer claims a repo. A claim on a repo that another agent holds is kept as a conflict."""
    ctx = source.ctx
    if source.repo and member.name != source.repo:
        source.skip("repo", member.repo_id, f"The peer is of repo {source.repo}")
        return False
    try:
        if endpoint is not None:
            check_endpoint(endpoint, loopback_allowed=ctx.node.loopback)
    except Refusal as refusal:
        source.skip("repo", member.repo_id, refusal.message)
        endpoint = None
    claim = (source.project_id, member.repo_id, source.agent_id, endpoint, ctx.stamp)
    if member.agent_id is not None:
        if same_agent(member.agent_id, source.agent_id):
            return _renew_endpoint(source, member, endpoint)
        projects.keep_lost_claim(ctx.db, *claim)
        source.skip("repo", member.repo_id, f"Repo {member.name} is held by another agent")
        return False
    if claims.is_released_from(ctx.db, source.project_id, member.repo_id, source.agent_id):
        source.skip("repo", member.repo_id, f"Repo {member.name} was released from the peer")
        return False
    projects.update_claim(ctx.db, *claim)
    ctx.record("repo", member.repo_id, source.project_id, "joined")
    source.members_changed()
    return True


def _renew_endpoint(source: SendingPeer, member: RepoMember, endpoint: str | None) -> bool:
    ctx, project_id = source.ctx, source.project_id
    known = {repo.repo_id: repo for repo in projects.repos(ctx.db, project_id)}
    repo = known[member.repo_id]
    if endpoint is None or repo.agent_endpoint == endpoint:
        return False
    claimed_at = repo.claimed_at or ctx.stamp
    projects.update_claim(ctx.db, project_id, repo.repo_id, source.agent_id, endpoint, claimed_at)
    ctx.record("repo", repo.repo_id, project_id, "joined")
    return True
