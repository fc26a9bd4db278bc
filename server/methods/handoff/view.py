"""How a handoff is shown, and to whom (acp-canonical §7, §12.3)."""

from typing import Any

import orjson

from schemas.base import iso, present
from schemas.handoff import ACPHandoffPackage, HandoffParams
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.agents import identity, same_agent
from server.domain.errors import Forbidden, NotFound
from server.methods.base import Context
from server.methods.handoff.transitions import (
    Transition,
    case_of,
    coordinators_of,
    roles_of,
    waits_for,
)
from server.store import handoffs, teams
from server.store.handoffs import Elsewhere, Handoff, HandoffEvent

NEWEST = "g"
"""After every id."""

HINTS = {"activate": "activate or complete", "hand_on": "initiate (to hand the task on)"}
"""How a step is asked for, where that is not its name."""

WITHDRAWS = {"reject": "reject (to withdraw it)"}
"""What the same step is to a sender."""


def get(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    shown = answer(ctx, case)
    shown["package"] = ACPHandoffPackage.model_validate(case.package).model_dump(
        mode="json", exclude_none=True
    )
    shown["artifacts"] = orjson.loads(case.handoff.artifacts or "[]")
    return shown


def history(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    shown = answer(ctx, case)
    shown["history"] = [_event(one) for one in handoffs.events(ctx.db, case.handoff.handoff_id)]
    return shown


def _event(event: HandoffEvent) -> dict[str, Any]:
    shown = {
        "seq": event.seq,
        "step": event.step,
        "before": event.before,
        "after": event.after,
        "actor": event.actor,
        "role": event.role,
        "code": event.code,
        "detail": event.detail,
        "recordedAt": iso(event.at),
    }
    return present(shown)


def list_(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """The caller's handoffs, or all of a teamspace that it is in; the newest first. What other
    nodes have offered it is beside them: these alone know its status and its team. With the role
    `coordinator`, for who coordinates here, what is of no teamspace; for humans, of that the offers
    that stand."""
    agent = identity(ctx.caller.agent_id)
    if params.role == "coordinator":
        _check_oversees(ctx)
    everything = False
    if params.team is not None:
        everything = authority.role_of(teams.members(ctx.db, params.team), agent) is not None
    found = handoffs.listed(
        ctx.db,
        agent,
        as_sender=params.role in (None, "sender"),
        as_receiver=params.role in (None, "receiver"),
        as_coordinator=params.role == "coordinator",
        everything=everything and params.role is None,
        team=params.team,
        task_id=params.task_id,
        status=params.status,
        before=params.cursor or NEWEST,
        limit=params.limit + 1,
    )
    away: list[Elsewhere] = []
    if params.role in (None, "receiver") and params.team is None:
        away = handoffs.listed_elsewhere(
            ctx.db,
            agent,
            task_id=params.task_id,
            before=params.cursor or NEWEST,
            limit=params.limit + 1,
        )
    ids = [one.handoff_id for one in found] + [one.handoff_id for one in away]
    ids.sort(reverse=True)
    page = set(ids[: params.limit])
    shown = [
        case
        for one in found
        if one.handoff_id in page and _may_list(ctx, case := case_of(ctx, one.handoff_id), params)
    ]
    result: dict[str, Any] = {"handoffs": [summary(case.handoff) for case in shown]}
    if away:
        result["elsewhere"] = [
            present({"handoffId": one.handoff_id, "taskId": one.task_id, "node": one.node})
            for one in away
            if one.handoff_id in page
        ]
    if len(ids) > params.limit:
        result["nextCursor"] = ids[params.limit - 1]
    return result


def _may_list(ctx: Context, case: Transition, params: HandoffParams) -> bool:
    overseen = params.role == "coordinator" and ctx.caller.human and case.is_open_offer
    return overseen or may_see(ctx, case)


def _check_oversees(ctx: Context) -> None:
    agent = ctx.caller.agent_id
    coordinates = any(same_agent(agent, one) for one in coordinators_of(ctx, None, {}))
    if not (ctx.caller.human or coordinates):
        raise Forbidden(
            "role: 'coordinator' is for who coordinates here (CACP_ACP_COORDINATORS, else the "
            "node's own agent) and for a human's key; leave it out to list your own",
            reason="role_authority",
        )


def visible(ctx: Context, params: HandoffParams) -> Transition:
    """The handoff, when the caller may see it; else it is as if there were none."""
    case = case_of(ctx, str(params.handoff_id))
    if not may_see(ctx, case):
        raise NotFound(
            f"There is no handoff {params.handoff_id}",
            kind="handoff",
            handoffId=params.handoff_id,
        )
    return case


def may_see(ctx: Context, case: Transition) -> bool:
    """The parties, whoever owned the task before, its coordinators; members of its teamspace,
    unless it is restricted and they could not approve it. A draft is its sender's alone."""
    agent = ctx.caller.agent_id
    if case.status == "draft":
        return same_agent(agent, case.handoff.from_agent)
    if roles_of(ctx, case) or any(same_agent(agent, one) for one in case.handoff.chain):
        return True
    member = authority.role_of(case.members, agent)
    if case.restricted:
        return authority.may("approve_handoff", member, guarded=True)
    return member is not None


def summary(found: Handoff) -> dict[str, Any]:
    """The HandoffSummary object."""
    shown = {
        "handoffId": found.handoff_id,
        "threadId": found.thread_id,
        "taskId": found.task_id,
        "fromAgent": found.from_agent,
        "toAgent": found.to_agent,
        "title": found.title,
        "reason": found.reason,
        "status": found.status,
        "team": found.team,
        "handedOnFrom": found.previous,
        "waitsFor": waits_for(found),
        "workq": found.workq,
        "packageHash": found.package_hash,
        "initiatedAt": found.initiated_at,
        "dueAt": None if found.due_at is None else iso(found.due_at),
        "escalatedAt": None if found.escalated_at is None else iso(found.escalated_at),
        "resolvedAt": found.resolved_at,
        "resolutionNotes": found.resolution_notes,
    }
    return present(shown)


def answer(ctx: Context, case: Transition) -> dict[str, Any]:
    found = case.handoff
    roles = roles_of(ctx, case)
    hints = HINTS | WITHDRAWS if roles == ("sender",) else HINTS
    may = [hints.get(one, one) for one in domain.may_do(case.status, roles)]
    waits = waits_for(found)
    said = f"You may now: {', '.join(may)}." if may else ""
    if waits and found.status != "draft":
        said = f"{said} It waits for: {', '.join(waits)}.".strip()
    if found.workq == "manual":
        said = f"{said} Move its workq items by hand: the node can't.".strip()
    return {"handoff": summary(found), "nextStep": said or "Nothing is yours to do."}
