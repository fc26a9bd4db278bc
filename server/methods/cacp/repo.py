"""cacp/repo/release and reassign: a repo whose agent is gone gets another (design §7)."""

from typing import Any, NoReturn

from schemas.lifecycle import (
    ReassignRepoParams,
    ReassignRepoResult,
    ReleaseRepoParams,
    ReleaseRepoResult,
)
from server.domain.agents import identity, same_agent
from server.domain.authorship import signer_of
from server.domain.errors import Conflict, Forbidden, NotFound
from server.domain.identifiers import is_founder
from server.domain.registers import ClaimRelease, RepoClaim, is_released, may_release
from server.methods.base import Context, open_project, writes
from server.methods.cacp.lifecycle import check_owner
from server.methods.cacp.project import member_named, sign_description
from server.store import claims, keys, mail_outbox, mesh, peers
from server.store.projects import RepoMember


@writes("cacp/repo/release", ReleaseRepoParams, ReleaseRepoResult)
def release(ctx: Context, params: ReleaseRepoParams) -> dict[str, Any]:
    """End an agent's claim on a repo, so that another agent can join with it. For the agent itself,
    the agent that created the project, the operator, and people whose key is for all projects; at
    the agent's home node, or at the node where the project was created. The agent can no longer
    write for the repo, and may join again. If another agent had claimed the repo in vain, it holds
    it now (`agentId`)."""
    project_id = params.project_id
    project = open_project(ctx, project_id)
    member = member_named(project_id, project, params.repo_name)
    held = claims.holder(ctx.db, project_id, member.repo_id)
    if held is None:
        raise Conflict(
            f"Nobody holds repo {member.name}: an agent with a key for it can call "
            "cacp/project/join",
            reason="not_held",
        )
    is_own = same_agent(held.agent_id, ctx.caller.agent_id)
    if not is_own and not (ctx.caller.human and ctx.caller.projects is None):
        what = f"release the repo of {held.agent_id} in project {project.name}"
        check_owner(ctx, project_id, what)
    _check_releasable(ctx, project_id, member, held)
    _end(ctx, project_id, member.repo_id, held)
    ctx.record("repo", member.repo_id, project_id, "released")
    now = claims.holder(ctx.db, project_id, member.repo_id)
    answer = {
        "repoId": member.repo_id,
        "repoName": member.name,
        "status": "released",
        "formerAgentId": held.agent_id,
    }
    return answer if now is None else answer | {"agentId": now.agent_id}


@writes("cacp/repo/reassign", ReassignRepoParams, ReassignRepoResult)
def reassign(ctx: Context, params: ReassignRepoParams) -> dict[str, Any]:
    """Give a repo to another agent, whose home is this node: it has a key for the repo here, or is
    a foreign peer of that repo. The former holder is released. For those who may release it."""
    project_id = params.project_id
    project = open_project(ctx, project_id)
    member = member_named(project_id, project, params.repo_name)
    held = claims.holder(ctx.db, project_id, member.repo_id)
    if held is None or not same_agent(held.agent_id, ctx.caller.agent_id):
        what = f"reassign repo {member.name} in project {project.name}"
        check_owner(ctx, project_id, what)
    agent_id = _at_home(ctx, member, params.agent_id)
    answer = {
        "repoId": member.repo_id,
        "repoName": member.name,
        "status": "reassigned",
        "agentId": agent_id,
    }
    if held is not None and same_agent(held.agent_id, agent_id):
        return answer
    ended = claims.releases(ctx.db, project_id, member.repo_id)
    others = [
        claim
        for claim in claims.every(ctx.db, project_id, member.repo_id)
        if not is_released(claim, ended) and not same_agent(claim.agent_id, agent_id)
    ]
    for claim in others:
        _check_releasable(ctx, project_id, member, claim)
    for claim in others:
        _end(ctx, project_id, member.repo_id, claim)
    claims.claim_anew(ctx.db, project_id, member.repo_id, agent_id, None, ctx.after)
    sign_description(ctx, project_id, member.repo_id)
    ctx.record("repo", member.repo_id, project_id, "reassigned")
    return answer if held is None else answer | {"formerAgentId": held.agent_id}


def _end(ctx: Context, project_id: str, repo_id: str, claim: RepoClaim) -> None:
    stamp = ctx.after(max(claim.claimed_at, claim.renewed_at))
    ended = ClaimRelease(identity(claim.agent_id), ctx.caller.agent_id, stamp)
    claims.state_release(ctx.db, project_id, repo_id, ctx.node.agent_id, ended)


def _check_releasable(ctx: Context, project_id: str, member: RepoMember, claim: RepoClaim) -> None:
    """Raises Forbidden when no other node would accept that this node ends the claim."""
    home = signer_of(claim.signature, ctx.node.agent_id)
    if may_release(project_id, ctx.node.agent_id, home):
        return
    agents = mesh.known_agents(ctx.db)
    founder = next((node for node in agents if is_founder(project_id, node)), None)
    raise Forbidden(
        f"The claim of {claim.agent_id} on repo {member.name} was made at another node, {home}. "
        f"Only that node can end it, or {founder or 'the node'} where the project was created: "
        "call this method there",
        reason="held_elsewhere",
        node=home,
        founder=founder,
    )


def _at_home(ctx: Context, member: RepoMember, wanted: str) -> str:
    """The agent id of the new holder, as its key names it. Raises Forbidden or NotFound unless this
    node can sign a claim for it."""
    if same_agent(wanted, ctx.node.agent_id):
        return ctx.node.agent_id
    home = mail_outbox.speaker(ctx.db, identity(wanted))
    if home is not None and not same_agent(home, ctx.node.agent_id):
        raise Forbidden(
            f"The home of {wanted} is {home}, which signs for it: release repo {member.name}, and "
            "have the agent join there with cacp/project/join",
            reason="home_elsewhere",
            node=home,
        )
    peer = peers.find(ctx.db, wanted)
    if peer is not None and peer.secret is None and peer.repo_name == member.name:
        return peer.agent_id
    own = [
        key
        for key in keys.every(ctx.db)
        if key.revoked_at is None and key.trust == "verified" and same_agent(key.agent_id, wanted)
    ]
    named = next((key for key in own if key.repo == member.name), None)
    if named is None:
        _refuse_without_key(member, wanted, sorted({key.repo for key in own}))
    return named.agent_id


def _refuse_without_key(member: RepoMember, wanted: str, repos: list[str]) -> NoReturn:
    other = f"; its keys are for {', '.join(repos)}" if repos else ""
    raise NotFound(
        f"{wanted} has no key for repo {member.name} at this node{other}. An operator creates one "
        f"with `cacp keys create {wanted} --repo {member.name}`",
        kind="agent",
        agentId=wanted,
        repos=repos,
    )
