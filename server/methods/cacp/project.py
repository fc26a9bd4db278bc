"""cacp/project/*: projects, their repos and who holds them (CACP 2.0, Project Methods)."""

from functools import partial
from typing import Any

import orjson

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
)
from server.domain.agents import same_agent
from server.domain.authorship import check_record
from server.domain.endpoints import check_endpoint
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, TooLarge
from server.domain.identifiers import founded_by, repo_id_for
from server.domain.registers import Weight
from server.methods.base import (
    Context,
    check_member,
    cursor_after,
    free_id,
    open_project,
    parse_cursor,
    reads,
    writes,
)
from server.methods.cacp.authority import check_own, weight_of_repo
from server.store import projects
from server.store.metered import metered
from server.store.projects import ProjectHeader, Repo

PAGE_BYTES = 4 * 1024 * 1024
"""A page of whole projects ends early once it holds this much."""
WHOLE_LIMIT = 500
SUMMARY_LIMIT = 50
OUTLINE_LIMIT = 500
NEWEST = (2**63 - 1, "")
"""Where a list begins: before any project that there is."""


@writes("cacp/project/create", CreateProjectParams, CreateProjectResult)
def create(ctx: Context, params: CreateProjectParams) -> dict[str, Any]:
    """Create a project; the repo whose name is the caller's own is claimed at once."""
    names = [repo.name for repo in params.repos]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"repos: named twice: {', '.join(twice)}", path="repos")
    project_id = _fresh_id(ctx)
    header = ProjectHeader(
        project_id=project_id,
        name=params.name,
        objective=params.objective,
        status="planning",
        agreement_policy=params.agreement_policy,
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
    )
    ctx.record("project", project_id, project_id, "created")
    return {"projectId": project_id, "status": "created", "repoCount": len(names)}


@writes("cacp/project/join", JoinProjectParams, JoinProjectResult)
def join(ctx: Context, params: JoinProjectParams) -> dict[str, Any]:
    """Join a project and claim a repository: the caller's own, or any free one as the node itself.

    Of a repo that another agent holds it is refused (-32004). Joining again renews the
    endpoint; without one it stays. From then on this node stands by what the repo is.
    """
    project = open_project(ctx, params.project_id)
    member = next((one for one in project.members if one.name == params.repo_name), None)
    if member is None:
        raise NotFound(
            f"Project {params.project_id} has no repo {params.repo_name}: "
            "add it with cacp/project/addRepo",
            kind="repo",
            repos=[one.name for one in project.members],
        )
    caller = ctx.caller
    if caller.via != "local" and params.repo_name != caller.repo:
        raise Forbidden(
            f"Your key is for {caller.repo or 'no repo'}, not for {params.repo_name}",
            reason="other_repo",
            repo=caller.repo,
        )
    if member.agent_id is not None and not same_agent(member.agent_id, caller.agent_id):
        raise Conflict(
            f"Repo {params.repo_name} is held by another agent",
            reason="repo_taken",
            heldBy=member.agent_id,
        )
    if params.agent_endpoint is not None:
        check_endpoint(params.agent_endpoint, loopback_allowed=ctx.node.loopback)
    projects.update_claim(
        ctx.db,
        params.project_id,
        member.repo_id,
        caller.agent_id,
        params.agent_endpoint,
        ctx.stamp,
    )
    _vouch(ctx, params.project_id, member.repo_id)
    ctx.record("repo", member.repo_id, params.project_id, "joined")
    return {"repoId": member.repo_id, "status": "joined", "projectName": project.name}


@reads(
    "cacp/project/get",
    ProjectParams,
    Project | ProjectOutline,
    wide=True,
    instead="cacp/project/get with summary: true for it in short, cacp/contract/get for one "
    "contract, cacp/context/list for its context",
)
def get(ctx: Context, params: ProjectParams) -> dict[str, Any]:
    """The whole project: repos, contracts with their history, and context; `summary` for it in
    short, with 500 contracts at a time.
    """
    header = _header(ctx, params.project_id)
    if not params.summary:
        return projects.whole(ctx.db, header)
    shown, last = projects.outline(ctx.db, header, params.cursor or "", OUTLINE_LIMIT)
    return shown if last is None else shown | {"nextCursor": last}


@reads(
    "cacp/project/list",
    ListProjectsParams,
    ListProjectsResult,
    wide=True,
    reach="own",
    instead="cacp/project/list with summary: true, or with cursor: data.nextCursor for those "
    "behind it",
)
def list_(ctx: Context, params: ListProjectsParams) -> dict[str, Any]:
    """Whole projects, the newest first, as many as fit into 4 MB; `summary` for short ones, 50 at
    a time. `total` is how many there are: when they are not all here, `nextCursor` is the `cursor`
    to go on with, and `more` says so in words.
    """
    limit = params.limit or (SUMMARY_LIMIT if params.summary else WHOLE_LIMIT)
    before = parse_cursor(params.cursor, NEWEST)
    own = ctx.caller.projects
    if own is None:
        headers = projects.headers_before(ctx.db, *before, limit + 1)
        total = projects.count(ctx.db)
    else:
        theirs = projects.headers_of(ctx.db, own)
        headers = [one for one in theirs if (one.created_at, one.project_id) < before]
        total = len(theirs)
    page: list[Any] = []
    size = 0
    for header in headers[:limit]:
        if params.summary:
            page.append(projects.summary(ctx.db, header))
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


def _cursor_after(header: ProjectHeader) -> str:
    return cursor_after(header.created_at, header.project_id)


def _first(ctx: Context, header: ProjectHeader) -> bytes:
    """The first project of a page, however large. Raises TooLarge, with where to go on."""
    try:
        return orjson.dumps(projects.whole(ctx.db, header))
    except TooLarge as refusal:
        refusal.data |= {"projectId": header.project_id, "nextCursor": _cursor_after(header)}
        raise


def _within(ctx: Context, header: ProjectHeader, room: int) -> bytes | None:
    """A further project of a page, or None when it has no room there."""
    left = room

    def count(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise _Full

    try:
        with metered(ctx.db, count):
            return orjson.dumps(projects.whole(ctx.db, header))
    except _Full:
        return None


class _Full(Exception):
    """The page has no room for this project."""


@writes("cacp/project/updateStatus", UpdateProjectStatusParams, UpdateProjectStatusResult)
def update_status(ctx: Context, params: UpdateProjectStatusParams) -> dict[str, Any]:
    """Say how far the project is: planning, implementing, integrating or complete."""
    check_member(ctx, params.project_id, open_project(ctx, params.project_id))
    header = _header(ctx, params.project_id)
    check_own(ctx, header)
    said = header._replace(status=params.status, stamp=ctx.after(header.stamp), signature=None)
    projects.update_header(ctx.db, said)
    ctx.record("project", params.project_id, params.project_id, params.status)
    return {"projectId": params.project_id, "status": params.status}


@writes("cacp/project/addRepo", AddRepoParams, AddRepoResult)
def add_repo(ctx: Context, params: AddRepoParams) -> dict[str, Any]:
    """Add a repository to a project; contracts proposed from now on bind it too."""
    project = open_project(ctx, params.project_id)
    check_member(ctx, params.project_id, project)
    if any(member.name == params.repo.name for member in project.members):
        raise Conflict(
            f"Project {params.project_id} has a repo {params.repo.name} already",
            reason="repo_exists",
        )
    repo = _repo(ctx, params.project_id, params.repo, ctx.stamp, claim=False)
    projects.insert_repo(ctx.db, params.project_id, repo)
    ctx.record("repo", repo.repo_id, params.project_id, "added")
    return {"repoId": repo.repo_id, "status": "added"}


def _repo(ctx: Context, project_id: str, repo: RepoParams, stamp: int, *, claim: bool) -> Repo:
    """A new repo. Those of one call are stamped a microsecond apart, which keeps their order."""
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


def _vouch(ctx: Context, project_id: str, repo_id: str) -> None:
    """Have this node stand by what a repo that is held here is, unless the project's founder does:
    then nobody else's word of it counts."""
    [repo] = [one for one in projects.repos(ctx.db, project_id) if one.repo_id == repo_id]
    if weight_of_repo(ctx, project_id, repo_id, repo.signature) < Weight.HOLDER:
        said = repo._replace(stamp=ctx.after(repo.stamp), signature=None)
        projects.update_repo(ctx.db, project_id, said)


def _fresh_id(ctx: Context) -> str:
    return free_id(
        ctx,
        partial(founded_by, ctx.node.agent_id),
        lambda project_id: projects.header(ctx.db, project_id) is not None,
    )


def _header(ctx: Context, project_id: str) -> ProjectHeader:
    header = projects.header(ctx.db, project_id)
    if header is None:
        raise NotFound(f"There is no project {project_id}", kind="project", projectId=project_id)
    return header
