"""acp/handoffs and acp/teams: what there is to see of handoffs and teamspaces."""

from typing import Any

from schemas.base import present
from schemas.handoff_board import HandoffsParams, HandoffsResult, TeamsParams, TeamsResult
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.agents import identity
from server.methods.acp.delivery import coordinates
from server.methods.acp.refusals import LOOKING
from server.methods.base import Context, page_of, reads
from server.methods.handoff.team import manifest_of, task_shown
from server.methods.handoff.transitions import HandoffCase, case_of
from server.methods.handoff.view import NEWEST, event_shown, may_see, summary
from server.store import handoffs, teams

TASKS_SHOWN = 100


@reads("acp/handoffs", HandoffsParams, HandoffsResult, access="write", wide=True, guard=LOOKING)
def list_handoffs(ctx: Context, params: HandoffsParams) -> dict[str, Any]:
    """List the handoffs that the caller sends or receives, newest first; for a human's key and for
    coordinators also all others outside teamspaces, and with `team` all of a teamspace that the
    caller is in. Changes nothing, unlike acp/handoff. Handoffs that other nodes hold are not
    listed: `list` of acp/handoff names them."""
    agent = identity(ctx.caller.agent_id)
    in_team = params.team is not None and (
        authority.role_of(teams.members(ctx.db, params.team), agent) is not None
    )
    rows = handoffs.listed(
        ctx.db,
        agent,
        as_sender=True,
        as_receiver=True,
        as_coordinator=coordinates(ctx),
        everything=in_team,
        team=params.team,
        task_id=params.task_id,
        status=params.status,
        before=params.cursor or NEWEST,
        limit=params.limit + 1,
    )
    page, more = page_of(rows, params.limit, lambda handoff: handoff.handoff_id)
    cases = (case_of(ctx, handoff.handoff_id) for handoff in page)
    shown = [_shown(ctx, case, params.steps) for case in cases if may_see(ctx, case)]
    return {"handoffs": shown, **more}


def _shown(ctx: Context, case: HandoffCase, with_steps: bool) -> dict[str, Any]:
    handoff = case.handoff
    is_open = handoff.status not in domain.ENDED
    shown = {
        "handoff": summary(handoff),
        "owner": domain.owner_of(handoff.status, handoff.from_agent, handoff.to_agent),
        "isOverdue": is_open and handoff.due_at is not None and handoff.due_at < ctx.now,
        "steps": [event_shown(event) for event in handoffs.events(ctx.db, handoff.handoff_id)]
        if with_steps
        else None,
    }
    return present(shown)


@reads("acp/teams", TeamsParams, TeamsResult, access="write", wide=True, guard=LOOKING)
def list_teams(ctx: Context, params: TeamsParams) -> dict[str, Any]:
    """List the teamspaces that the caller is in, with their members and tasks; for the operator
    all. Changes nothing, unlike acp/team."""
    agent = identity(ctx.caller.agent_id)
    roles = {team: role for team, _, _, role in teams.of_agent(ctx.db, agent)}
    names = teams.every(ctx.db) if ctx.caller.operator else sorted(roles)
    rest = [name for name in names if name > (params.cursor or "")]
    page, more = page_of(rest, params.limit, lambda name: name)
    shown = []
    for name in page:
        tasks = teams.tasks(ctx.db, name)
        listed = {
            **manifest_of(ctx, name),
            "role": roles.get(name),
            "tasks": [task_shown(task) for task in tasks[:TASKS_SHOWN]],
            "moreTasks": max(0, len(tasks) - TASKS_SHOWN),
        }
        shown.append(present(listed))
    return {"teams": shown, **more}
