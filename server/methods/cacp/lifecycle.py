"""cacp/project/archive, unarchive and delete: extensions of CACP 2.0 (design §7)."""

from typing import Any

from schemas.base import iso
from schemas.lifecycle import LifecycleParams, LifecycleResult, LifecycleState
from server.domain.agents import same_agent
from server.domain.errors import Forbidden
from server.domain.identifiers import is_founder
from server.domain.lifecycle import Lifecycle, may_set
from server.methods.base import Context, no_project, writes
from server.methods.cacp.authority import has_standing
from server.store import lifecycle, mesh, projects


@writes("cacp/project/archive", LifecycleParams, LifecycleResult)
def archive(ctx: Context, params: LifecycleParams) -> dict[str, Any]:
    """Archive a project: it can only be read from then on, and lists leave it out. For the agent
    that created it and for the operator, at any node that takes part in it. Other nodes follow."""
    return _set(ctx, params.project_id, "archived")


@writes("cacp/project/unarchive", LifecycleParams, LifecycleResult)
def unarchive(ctx: Context, params: LifecycleParams) -> dict[str, Any]:
    """Make an archived project active again, for those who may archive it."""
    return _set(ctx, params.project_id, "active")


@writes("cacp/project/delete", LifecycleParams, LifecycleResult)
def delete(ctx: Context, params: LifecycleParams) -> dict[str, Any]:
    """Delete a project for good: its contracts, context and files are removed, here and on every
    node that hears of it. For the agent that created it and for the operator, at the node where it
    was created. Mail about it stays. Deleting it again changes nothing."""
    known = lifecycle.find(ctx.db, params.project_id)
    if known is not None and known.is_deleted:
        return _shown(params.project_id, known)
    return _set(ctx, params.project_id, "deleted")


def check_owner(ctx: Context, project_id: str, what: str) -> None:
    """Raises Forbidden unless the caller is the operator of this node or the agent that created the
    project at it. `what` is what the caller wants to do."""
    creator = lifecycle.creator(ctx.db, project_id)
    if ctx.caller.operator:
        return
    if creator is not None and same_agent(creator, ctx.caller.agent_id):
        return
    who = f"the agent that created it, {creator}," if creator else "the agent that created it"
    raise Forbidden(
        f"You can't {what}: only {who} and the operator of this node can",
        reason="not_project_owner",
        projectId=project_id,
        createdBy=creator,
    )


def _set(ctx: Context, project_id: str, state: LifecycleState) -> dict[str, Any]:
    header = projects.header(ctx.db, project_id)
    if header is None:
        raise no_project(ctx, project_id)
    known = lifecycle.find(ctx.db, project_id)
    wanted = {"archived": "archive", "active": "unarchive", "deleted": "delete"}[state]
    check_owner(ctx, project_id, f"{wanted} project {header.name}")
    own = ctx.node.agent_id
    if not may_set(state, project_id, own, has_standing=has_standing(ctx, project_id, own)):
        raise _elsewhere(ctx, project_id, header.name, state)
    if (known.state if known else "active") == state:
        shown = known or Lifecycle("active", header.name, ctx.caller.agent_id, header.created_at)
        return _shown(project_id, shown)
    stamp = ctx.after(known.stamp if known else header.stamp)
    register = Lifecycle(state, header.name, ctx.caller.agent_id, stamp)
    removed = apply(ctx, project_id, register)
    return _shown(project_id, register) | ({"removed": removed} if removed is not None else {})


def apply(ctx: Context, project_id: str, register: Lifecycle) -> dict[str, Any] | None:
    """Store a register that counts, and remove the content of a deleted project. Returns how much
    that was."""
    removed = lifecycle.remove_content(ctx.db, project_id) if register.is_deleted else None
    lifecycle.put(ctx.db, project_id, register)
    outcome = "unarchived" if register.state == "active" else register.state
    ctx.record("project", project_id, project_id, outcome)
    return removed


def _elsewhere(ctx: Context, project_id: str, name: str, state: LifecycleState) -> Forbidden:
    """The refusal at a node whose statement no other node would accept."""
    if state != "deleted":
        return Forbidden(
            f"You can't {'archive' if state == 'archived' else 'unarchive'} project {name} at this "
            "node, which takes no part in it: no local agent has joined it. Do it at a node that "
            "takes part, or call cacp/project/join first",
            reason="no_standing",
            projectId=project_id,
        )
    agents = mesh.known_agents(ctx.db)
    founder = next((node for node in agents if is_founder(project_id, node)), None)
    where = f"{founder}, where it" if founder else "the node where it"
    return Forbidden(
        f"Project {name} can only be deleted at {where} was created: deleting is final, so other "
        "nodes accept it from no other node. Here you can archive it: cacp/project/archive",
        reason="not_founder",
        projectId=project_id,
        node=founder,
    )


def _shown(project_id: str, register: Lifecycle) -> dict[str, Any]:
    return {
        "projectId": project_id,
        "name": register.name,
        "status": register.state,
        "by": register.by,
        "at": iso(register.stamp),
    }
