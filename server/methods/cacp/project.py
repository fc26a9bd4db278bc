"""cacp/project/*: projects, their repos and the repos' holders (CACP 2.0, Project Methods)."""

from functools import partial
from typing import Any

import orjson

from schemas.base import iso
from schemas.project import (
    AddRepoParams,
    AddRepoResult,
    CreateProjectParams,
    CreateProjectResult,
    JoinProjectParams,
    JoinProjectResult,
    ListProjectsParams,
    ListProjectsResult,
    Project,
    ProjectOutline,
    ProjectParams,
    RepoParams,
    UpdateProjectStatusParams,
    UpdateProjectStatusResult,
    UpdateVerificationPolicyParams,
    UpdateVerificationPolicyResult,
)
from server.domain.agents import same_agent
from server.domain.authorship import check_record
from server.domain.endpoints import check_endpoint
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, TooLarge
from server.domain.identifiers import founded_by, repo_id_for
from server.domain.registers import Weight
from server.domain.terms import weakens
from server.methods.base import (
    Context,
    check_member,
    cursor_after,
    free_id,
    no_project,
    open_project,
    parse_cursor,
    reads,
    writes,
)
from server.methods.cacp.authority import check_own, weight_of_repo
from server.methods.cacp.lifecycle import check_owner
from server.store import claims, lifecycle, projects
from server.store.metered import metered
from server.store.projects import Membership, ProjectHeader, Repo, RepoMember

PAGE_BYTES = 4 * 1024 * 1024
"""Bytes at which a page of whole projects ends early."""
WHOLE_LIMIT = 500
SUMMARY_LIMIT = 50
OUTLINE_LIMIT = 500
NEWEST = (2**63 - 1, "")
"""Where a list begins: a position before every project."""


@writes("cacp/project/create", CreateProjectParams, CreateProjectResult)
def create(ctx: Context, params: CreateProjectParams) -> dict[str, Any]:
    """Create a project; the caller claims the repo of its name at once."""
    names = [repo.name for repo in params.repos]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"repos: named more than once: {', '.join(twice)}", path="repos")
    project_id = _fresh_id(ctx)
    header = ProjectHeader(
        project_id=project_id,
        name=params.name,
        objective=params.objective,
        status="planning",
        agreement_policy=params.agreement_policy,
        verification_policy=params.verification_policy,
        created_at=ctx.stamp,
        stamp=ctx.stamp,
    )
    projects.insert(
        ctx.db,
        header,
        [
            _repo(ctx, project_id, repo, ctx.stamp + place, claim=True)
            for place, repo in enumerate(params.repos)
        ],
        created_by=ctx.caller.agent_id,
    )
    ctx.record("project", project_id, project_id, "created")
    return {"projectId": project_id, "status": "created", "repoCount": len(names)}


@writes("cacp/project/join", JoinProjectParams, JoinProjectResult)
def join(ctx: Context, params: JoinProjectParams) -> dict[str, Any]:
    """Join a project and claim a repository: the caller's own, or any free one as the node itself.

    It is refused (-32004) when another agent holds the repo. Joining again renews the endpoint;
    without one, the endpoint stays. From then on this node signs the repo's description.
    """
    project = open_project(ctx, params.project_id)
    member = member_named(params.project_id, project, params.repo_name)
    caller = ctx.caller
    if not caller.is_own_agent and params.repo_name != caller.repo:
        raise Forbidden(
            _other_repo(caller.repo, params.repo_name),
            reason="other_repo",
            repo=caller.repo,
        )
    if member.agent_id is not None and not same_agent(member.agent_id, caller.agent_id):
        raise Conflict(
            f"Repo {params.repo_name} is held by {member.agent_id}: join with that agent's key, or "
            "add a repo of your own with cacp/project/addRepo",
            reason="repo_taken",
            heldBy=member.agent_id,
        )
    if params.agent_endpoint is not None:
        check_endpoint(params.agent_endpoint, loopback_allowed=ctx.node.loopback)
    claim = (ctx.db, params.project_id, member.repo_id, caller.agent_id, params.agent_endpoint)
    if claims.is_released_from(ctx.db, params.project_id, member.repo_id, caller.agent_id):
        claims.claim_anew(*claim, ctx.after)
    else:
        projects.update_claim(*claim, ctx.stamp)
    sign_description(ctx, params.project_id, member.repo_id)
    ctx.record("repo", member.repo_id, params.project_id, "joined")
    return {"repoId": member.repo_id, "status": "joined", "projectName": project.name}


def member_named(project_id: str, project: Membership, name: str) -> RepoMember:
    """A project's repo by its name. Raises NotFound."""
    for member in project.members:
        if member.name == name:
            return member
    names = ", ".join(member.name for member in project.members) or "none"
    raise NotFound(
        f"Project {project_id} has no repo {name}: it has {names}; cacp/project/addRepo adds one",
        kind="repo",
        repos=[member.name for member in project.members],
    )


def _other_repo(own: str | None, wanted: str) -> str:
    key = f"Your key is for repo {own}" if own else "Your key is not bound to a repo"
    return f"{key}; to join as {wanted}, use a key made by `cacp keys create --repo {wanted}`"


@reads(
    "cacp/project/get",
    ProjectParams,
    Project | ProjectOutline,
    wide=True,
    instead="cacp/project/get with summary: true for a short form, cacp/contract/get for one "
    "contract, cacp/context/list for its context",
)
def get(ctx: Context, params: ProjectParams) -> dict[str, Any]:
    """Return the whole project: repos, contracts with their history, and context. `summary` returns
    a short form with 500 contracts at a time.
    """
    header = _header(ctx, params.project_id)
    if not params.summary:
        return _whole(ctx, header)
    shown, last = projects.outline(ctx.db, header, params.cursor or "", OUTLINE_LIMIT)
    shown |= _archived(ctx, header, "archivedBy", "archivedAt")
    return shown if last is None else shown | {"nextCursor": last}


@reads(
    "cacp/project/list",
    ListProjectsParams,
    ListProjectsResult,
    wide=True,
    reach="own",
    instead="cacp/project/list with summary: true, or with cursor: data.nextCursor for the "
    "projects after it",
)
def list_(ctx: Context, params: ListProjectsParams) -> dict[str, Any]:
    """List whole projects, the newest first, as many as fit into 4 MB; `summary` lists short forms,
    50 at a time. Archived projects are left out without `includeArchived`. `total` is the number
    of all projects that are listed. When more follow, `nextCursor` is the
    `cursor` of the next page, and `more` says so in words.
    """
    limit = params.limit or (SUMMARY_LIMIT if params.summary else WHOLE_LIMIT)
    before = parse_cursor(params.cursor, NEWEST)
    own = ctx.caller.projects
    if own is None:
        archived = params.include_archived
        headers = projects.headers_before(ctx.db, *before, limit + 1, archived=archived)
        total = projects.count(ctx.db, archived=archived)
    else:
        allowed = [
            header
            for header in projects.headers_of(ctx.db, own)
            if params.include_archived or not _archived(ctx, header)
        ]
        headers = [header for header in allowed if (header.created_at, header.project_id) < before]
        total = len(allowed)
    page: list[Any] = []
    size = 0
    for header in headers[:limit]:
        if params.summary:
            summary = projects.summary(ctx.db, header)
            page.append(summary | _archived(ctx, header, "archivedBy", "archivedAt"))
            continue
        document = _within(ctx, header, PAGE_BYTES - size) if page else _first(ctx, header)
        if document is None:
            break
        size += len(document)
        page.append(orjson.Fragment(document))
    result: dict[str, Any] = {"projects": page, "total": total}
    if len(page) < len(headers):
        cursor = _cursor_after(headers[len(page) - 1])
        result["nextCursor"] = cursor
        result["more"] = (
            f"These are {len(page)} of {total} projects, the newest first. Older ones follow: call "
            f"cacp/project/list with cursor {cursor}"
        )
    return result


def _whole(ctx: Context, header: ProjectHeader) -> dict[str, Any]:
    return projects.whole(ctx.db, header) | _archived(ctx, header)


def _archived(
    ctx: Context, header: ProjectHeader, by: str = "archived_by", at: str = "archived_at"
) -> dict[str, Any]:
    """Who archived a project, and when, under these names; empty unless it is archived."""
    register = lifecycle.find(ctx.db, header.project_id)
    if register is None or register.state != "archived":
        return {}
    return {by: register.by, at: iso(register.stamp)}


def _cursor_after(header: ProjectHeader) -> str:
    return cursor_after(header.created_at, header.project_id)


def _first(ctx: Context, header: ProjectHeader) -> bytes:
    """The first project of a page, however large. Raises TooLarge with the next page's cursor."""
    try:
        return orjson.dumps(_whole(ctx, header))
    except TooLarge as refusal:
        refusal.data |= {"projectId": header.project_id, "nextCursor": _cursor_after(header)}
        raise


def _within(ctx: Context, header: ProjectHeader, room: int) -> bytes | None:
    """A further project of a page; None when it is larger than `room` bytes."""
    left = room

    def count(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise _Full

    try:
        with metered(ctx.db, count):
            return orjson.dumps(_whole(ctx, header))
    except _Full:
        return None


class _Full(Exception):
    """The page has no room for this project."""


@writes("cacp/project/updateStatus", UpdateProjectStatusParams, UpdateProjectStatusResult)
def update_status(ctx: Context, params: UpdateProjectStatusParams) -> dict[str, Any]:
    """Set the project's status: planning, implementing, integrating or complete."""
    check_member(ctx, params.project_id, open_project(ctx, params.project_id))
    header = _header(ctx, params.project_id)
    check_own(ctx, header)
    updated = header._replace(status=params.status, stamp=ctx.after(header.stamp), signature=None)
    projects.update_header(ctx.db, updated)
    ctx.record("project", params.project_id, params.project_id, params.status)
    return {"projectId": params.project_id, "status": params.status}


@writes(
    "cacp/project/updateVerificationPolicy",
    UpdateVerificationPolicyParams,
    UpdateVerificationPolicyResult,
)
def update_verification_policy(
    ctx: Context, params: UpdateVerificationPolicyParams
) -> dict[str, Any]:
    """Set what verifies the versions that are written from now on; versions keep what they have.
    For the agent that created the project and for the operator. Only the operator and a person may
    ask for less proof than before."""
    project = open_project(ctx, params.project_id)
    header = _header(ctx, params.project_id)
    before, wanted = project.verification_policy, params.verification_policy
    may_weaken = ctx.caller.operator or ctx.caller.human
    if weakens(before, wanted) and not may_weaken:
        raise Forbidden(
            f"{wanted} asks for less proof than {before}: only the operator, and a person with a "
            "human's key, may set it",
            reason="weaker_policy",
            verificationPolicy=before,
        )
    if not ctx.caller.human:
        check_owner(ctx, params.project_id, "set what verifies its contracts")
    check_own(ctx, header)
    if before != wanted:
        stamp = ctx.after(header.stamp)
        updated = header._replace(verification_policy=wanted, stamp=stamp, signature=None)
        projects.update_header(ctx.db, updated)
        ctx.record("project", params.project_id, params.project_id, header.status)
    return {"projectId": params.project_id, "verificationPolicy": wanted}


@writes("cacp/project/addRepo", AddRepoParams, AddRepoResult)
def add_repo(ctx: Context, params: AddRepoParams) -> dict[str, Any]:
    """Add a repository to a project; contracts proposed from now on bind it too by default."""
    project = open_project(ctx, params.project_id)
    check_member(ctx, params.project_id, project)
    if any(member.name == params.repo.name for member in project.members):
        raise Conflict(
            f"Project {params.project_id} already has a repo {params.repo.name}",
            reason="repo_exists",
        )
    repo = _repo(ctx, params.project_id, params.repo, ctx.stamp, claim=False)
    projects.insert_repo(ctx.db, params.project_id, repo)
    ctx.record("repo", repo.repo_id, params.project_id, "added")
    return {"repoId": repo.repo_id, "status": "added"}


def _repo(ctx: Context, project_id: str, repo: RepoParams, stamp: int, *, claim: bool) -> Repo:
    """A new repo. Repos of one call get stamps a microsecond apart, which keeps their order."""
    check_record(repo.relevant_paths, "relevantPaths")
    claimed = claim and repo.name == ctx.caller.repo
    return Repo(
        repo_id=repo_id_for(project_id, repo.name),
        name=repo.name,
        role=repo.role,
        language=repo.language,
        relevant_paths=orjson.dumps(repo.relevant_paths or []).decode(),
        url=repo.url,
        stamp=stamp,
        agent_id=ctx.caller.agent_id if claimed else None,
        claimed_at=ctx.stamp if claimed else None,
    )


def sign_description(ctx: Context, project_id: str, repo_id: str) -> None:
    """Have this node sign the description of a repo that is held here, unless the founder has
    signed it: no other node's description would count."""
    [repo] = [
        candidate
        for candidate in projects.repos(ctx.db, project_id)
        if candidate.repo_id == repo_id
    ]
    if weight_of_repo(ctx, project_id, repo_id, repo.signature) < Weight.HOLDER:
        signed = repo._replace(stamp=ctx.after(repo.stamp), signature=None)
        projects.update_repo(ctx.db, project_id, signed)


def _fresh_id(ctx: Context) -> str:
    return free_id(
        ctx,
        partial(founded_by, ctx.node.agent_id),
        lambda project_id: bool(projects.known_of(ctx.db, [project_id])),
    )


def _header(ctx: Context, project_id: str) -> ProjectHeader:
    header = projects.header(ctx.db, project_id)
    if header is None:
        raise no_project(ctx, project_id)
    return header
