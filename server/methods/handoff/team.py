"""acp/team: teamspaces, their members and tasks (acp-canonical §8)."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from schemas.base import iso, present
from schemas.teamspace import MEMBERS_MAX, TeamParams, TeamResult, TeamRole
from server.domain.acp import teams as authority
from server.domain.agents import identity
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from server.methods.acp.refusals import SENDING
from server.methods.base import Context, page_of, writes
from server.methods.handoff.offer import check_active, check_may_work
from server.methods.handoff.transitions import standing_task
from server.store import handoffs, teams
from server.store.teams import TaskRow


@writes("acp/team", TeamParams, TeamResult, guard=SENDING)
def team(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Manage teamspaces: create, close, addMember, removeMember, changeRole; createTask, assign,
    block, unblock, completeTask; decide, registerArtifact; get, list and log."""
    return ACTIONS[params.action](ctx, params)


# --- the teamspace ------------------------------------------------------------------------------


def _create(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Create a teamspace with the caller as its first coordinator."""
    name = str(params.team)
    if teams.find(ctx.db, name) is not None:
        raise Conflict(f"There is a teamspace {name} already", reason="team_exists", team=name)
    creator = identity(ctx.caller.agent_id)
    members: dict[str, TeamRole] = {creator: "coordinator"}
    for member in params.members or []:
        address = identity(member.agent_id)
        if address in members:
            raise InvalidInput(f"members: {address} is listed twice", path="members")
        members[address] = member.role
    if len(members) > MEMBERS_MAX:
        raise InvalidInput(f"members: {MEMBERS_MAX} at most, including you", path="members")
    teams.insert(ctx.db, name, str(params.name), params.purpose or "", creator, ctx.stamp)
    _log(ctx, name, "roles", "create", agent_id=creator, role="coordinator")
    for address, role in members.items():
        teams.put_member(ctx.db, name, address, role)
        if address != creator:
            _log(ctx, name, "roles", "addMember", agent_id=address, role=role)
    return manifest_of(ctx, name)


def _close(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, _ = _entitled(ctx, params, "close_team")
    teams.close(ctx.db, name, ctx.stamp)
    _log(ctx, name, "roles", "close", detail=params.detail)
    return manifest_of(ctx, name)


def _add_member(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, members = _entitled(ctx, params, "manage_members")
    address = identity(str(params.agent_id))
    if address in members:
        raise Conflict(
            f"{address} is a member already; changeRole changes its role",
            reason="already_member",
            role=members[address],
        )
    if len(members) >= MEMBERS_MAX:
        raise Conflict(
            f"A teamspace has {MEMBERS_MAX} members at most: remove one first, or create another",
            reason="team_full",
            limit=MEMBERS_MAX,
        )
    return _put_role(ctx, name, address, params)


def _change_role(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, members = _entitled(ctx, params, "manage_members")
    address = _member(members, params)
    assert params.role is not None
    authority.check_still_coordinated({**members, address: params.role}.values())
    return _put_role(ctx, name, address, params)


def _put_role(ctx: Context, name: str, address: str, params: TeamParams) -> dict[str, Any]:
    assert params.role is not None
    teams.put_member(ctx.db, name, address, params.role)
    detail = params.detail
    _log(ctx, name, "roles", params.action, agent_id=address, role=params.role, detail=detail)
    return manifest_of(ctx, name)


def _remove_member(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, members = _entitled(ctx, params, "manage_members")
    address = _member(members, params)
    left = [role for agent, role in members.items() if agent != address]
    authority.check_still_coordinated(left)
    teams.drop_member(ctx.db, name, address)
    _log(ctx, name, "roles", "removeMember", agent_id=address, detail=params.detail)
    return manifest_of(ctx, name)


# --- tasks --------------------------------------------------------------------------------------


def _create_task(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, members = _entitled(ctx, params, "create_task")
    task_id = str(params.task_id)
    if standing_task(ctx, task_id) is not None or handoffs.active(ctx.db, task_id) is not None:
        raise Conflict(f"There is a task {task_id} already", reason="task_exists")
    owner = None
    if params.agent_id is not None:
        owner = _new_owner(members, params, params.kind)
    teams.drop_task(ctx.db, task_id)
    teams.insert_task(
        ctx.db,
        task_id,
        team=name,
        title=str(params.title),
        kind=params.kind,
        high_risk=bool(params.high_risk),
        created_by=identity(ctx.caller.agent_id),
        stamp=ctx.stamp,
    )
    if owner is not None:
        teams.assign(ctx.db, task_id, owner, ctx.stamp)
    return _task_done(ctx, name, params, owner=owner)


def _assign(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Make a member the task's owner, and start a new chain of owners. This is how a coordinator
    resolves a cycle (§7.2 rule 6)."""
    name, members, task = _task(ctx, params)
    authority.check("assign_owner", _role(ctx, members), kind=task.kind)
    active = handoffs.active(ctx.db, task.task_id)
    if active is not None:
        raise Conflict(
            f"Handoff {active.handoff_id} of the task is {active.status}: "
            "reject or revoke it first",
            reason="ownership_conflict",
            handoffId=active.handoff_id,
            status=active.status,
        )
    owner = _new_owner(members, params, task.kind)
    teams.assign(ctx.db, task.task_id, owner, ctx.stamp)
    return _task_done(ctx, name, params, owner=owner)


def _new_owner(members: Mapping[str, TeamRole], params: TeamParams, kind: Any) -> str:
    address = _member(members, params)
    check_may_work(members[address], kind)
    return address


def _block(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, members, task = _task(ctx, params)
    authority.check("block_work", _role(ctx, members))
    _check_status(task, "open", "blocked")
    teams.put_task_status(ctx.db, task.task_id, "blocked", params.code, params.detail)
    return _task_done(ctx, name, params, code=params.code)


def _unblock(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name, members, task = _task(ctx, params)
    authority.check("block_work", _role(ctx, members))
    _check_status(task, "blocked")
    teams.put_task_status(ctx.db, task.task_id, "open")
    return _task_done(ctx, name, params)


def _complete_task(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Complete a task without a handoff: as its owner, or for a task of high risk as a role that
    §8.4 names."""
    name, members, task = _task(ctx, params)
    role = _role(ctx, members)
    owned = task.owned
    if task.high_risk:
        authority.check("close_high_risk", role)
    elif owned is None or owned.owner != identity(ctx.caller.agent_id):
        raise Forbidden(
            "Only the task's owner may complete it",
            reason="not_the_owner",
            owner=owned.owner if owned else None,
        )
    active = handoffs.active(ctx.db, task.task_id)
    if active is not None:
        raise Conflict(
            f"The task is under handoff {active.handoff_id}: complete the handoff instead",
            reason="ownership_conflict",
            handoffId=active.handoff_id,
            status=active.status,
        )
    _check_status(task, "open")
    teams.put_task_status(ctx.db, task.task_id, "completed")
    return _task_done(ctx, name, params)


def _check_status(task: TaskRow, *wanted: str) -> None:
    if task.status not in wanted:
        raise Conflict(
            f"The task is {task.status}; this needs one that is {' or '.join(wanted)}",
            reason="task_status",
            status=task.status,
        )


# --- decisions and artifacts --------------------------------------------------------------------


def _decide(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Record a decision; any member may."""
    return _noted(ctx, params, "decisions", title=params.title, detail=params.detail)


def _register_artifact(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Register an artifact; any member may."""
    assert params.ref is not None
    ref = params.ref.model_dump(exclude_none=True)
    return _noted(
        ctx, params, "artifacts", artifact_id=params.artifact_id, ref=ref, detail=params.detail
    )


def _noted(ctx: Context, params: TeamParams, log: str, **line: Any) -> dict[str, Any]:
    members = check_active(ctx, str(params.team))
    if authority.role_of(members, ctx.caller.agent_id) is None:
        raise _no_team(params.team)
    _log(ctx, str(params.team), log, params.action, task_id=params.task_id, **line)
    return manifest_of(ctx, str(params.team))


# --- reading ------------------------------------------------------------------------------------


def _get(ctx: Context, params: TeamParams) -> dict[str, Any]:
    name = _seen(ctx, params)
    tasks = [task_shown(task) for task in teams.tasks(ctx.db, name)]
    return manifest_of(ctx, name) | {"tasks": tasks}


def _list(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """The teamspaces that the caller is a member of."""
    memberships = teams.of_agent(ctx.db, identity(ctx.caller.agent_id))
    return {
        "teams": [
            {"team": team, "name": name, "status": status, "role": role}
            for team, name, status, role in memberships
            if params.status in (None, status)
        ]
    }


def _log_lines(ctx: Context, params: TeamParams) -> dict[str, Any]:
    """Lines of a log of §8.2, oldest first."""
    name = _seen(ctx, params)
    after = params.cursor or 0
    entries = teams.log_after(ctx.db, name, str(params.log), after, params.limit + 1)
    page, more = page_of(entries, params.limit, lambda entry: entry[0])
    return {"lines": [{"seq": seq, "line": orjson.loads(line)} for seq, line in page], **more}


# --- what they share ----------------------------------------------------------------------------


def _entitled(
    ctx: Context, params: TeamParams, action: authority.Authority
) -> tuple[str, dict[str, TeamRole]]:
    """The name and members of an active teamspace. Raises Forbidden unless the caller may do
    `action` there."""
    name = _seen(ctx, params)
    members = check_active(ctx, name)
    authority.check(action, _role(ctx, members))
    return name, members


def _task(ctx: Context, params: TeamParams) -> tuple[str, dict[str, TeamRole], TaskRow]:
    name = _seen(ctx, params)
    members = check_active(ctx, name)
    task = teams.task(ctx.db, str(params.task_id))
    if task is None or task.team != name:
        raise NotFound(
            f"There is no task {params.task_id} in the teamspace",
            kind="task",
            taskId=params.task_id,
        )
    return name, members, task


def _seen(ctx: Context, params: TeamParams) -> str:
    """The name of a teamspace that the caller is a member of. Raises NotFound for any other."""
    name = str(params.team)
    if _role(ctx, teams.members(ctx.db, name)) is None:
        raise _no_team(name)
    return name


def _no_team(name: str | None) -> NotFound:
    return NotFound(f"There is no teamspace {name}", kind="teamspace", team=name)


def _role(ctx: Context, members: Mapping[str, TeamRole]) -> TeamRole | None:
    return authority.role_of(members, ctx.caller.agent_id)


def _member(members: Mapping[str, TeamRole], params: TeamParams) -> str:
    address = identity(str(params.agent_id))
    if address not in members:
        raise NotFound(
            f"{address} is not a member of the teamspace", kind="member", agentId=params.agent_id
        )
    return address


def _task_done(ctx: Context, name: str, params: TeamParams, **line: Any) -> dict[str, Any]:
    """Log the step on a task, and return the teamspace with the task."""
    _log(
        ctx,
        name,
        "decisions",
        params.action,
        task_id=params.task_id,
        detail=params.detail,
        **line,
    )
    task = teams.task(ctx.db, str(params.task_id))
    assert task is not None
    return manifest_of(ctx, name) | {"task": task_shown(task)}


def _log(ctx: Context, name: str, log: str, event: str, **line: Any) -> None:
    entry = {"at": iso(ctx.stamp), "event": event, "actor": ctx.caller.agent_id, **present(line)}
    teams.log(ctx.db, name, log, entry)
    ctx.record("teamspace", name, None, event)


def manifest_of(ctx: Context, name: str) -> dict[str, Any]:
    teamspace = teams.find(ctx.db, name)
    assert teamspace is not None
    manifest = {
        "protocol": "acp",
        "version": "1.0.0",
        "teamspace_id": teamspace.team,
        "name": teamspace.name,
        "purpose": teamspace.purpose,
        "status": teamspace.status,
        "created_by": teamspace.created_by,
        "created_at": iso(teamspace.created_at),
        "members": [
            {"agent_id": agent, "role": role} for agent, role in teams.members(ctx.db, name).items()
        ],
    }
    if teamspace.closed_at is not None:
        manifest["closed_at"] = iso(teamspace.closed_at)
    return {"manifest": manifest}


def task_shown(task: TaskRow) -> dict[str, Any]:
    owned = task.owned
    shown = {
        "taskId": task.task_id,
        "title": task.title,
        "kind": task.kind,
        "highRisk": bool(task.high_risk),
        "status": task.status,
        "owner": owned.owner if owned else None,
        "blockCode": task.block_code,
        "blockDetail": task.block_detail,
    }
    return present(shown)


ACTIONS: dict[str, Callable[[Context, TeamParams], dict[str, Any]]] = {
    "create": _create,
    "close": _close,
    "addMember": _add_member,
    "removeMember": _remove_member,
    "changeRole": _change_role,
    "createTask": _create_task,
    "assign": _assign,
    "block": _block,
    "unblock": _unblock,
    "completeTask": _complete_task,
    "decide": _decide,
    "registerArtifact": _register_artifact,
    "get": _get,
    "list": _list,
    "log": _log_lines,
}
