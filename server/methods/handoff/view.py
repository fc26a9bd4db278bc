"""How a handoff is shown, and to whom (acp-canonical §7, §12.3)."""

from typing import Any

import orjson

from schemas.base import iso, present
from schemas.handoff import ACPHandoffPackage, HandoffParams
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.agents import identity, same_agent
from server.domain.errors import Forbidden
from server.methods.acp.delivery import coordinates
from server.methods.base import Context
from server.methods.handoff.transitions import (
    HandoffCase,
    case_of,
    no_handoff,
    roles_of,
    waits_for,
)
from server.store import handoffs, teams
from server.store.handoffs import Elsewhere, Handoff, HandoffHistoryRow

NEWEST = "g"
"""An id that sorts after every other."""

HINTS = {"activate": "activate or complete", "hand_on": "initiate (to hand the task on)"}
"""The action to call for a step, where its name differs."""

WITHDRAWS = {"reject": "reject (to withdraw it)"}
"""The same for a sender."""


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
    shown["history"] = [
        event_shown(event) for event in handoffs.events(ctx.db, case.handoff.handoff_id)
    ]
    return shown


def event_shown(event: HandoffHistoryRow) -> dict[str, Any]:
    """The HandoffEvent object."""
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
    """The caller's handoffs, or all of a teamspace that it is in; the newest first. `elsewhere` has
    the offers of other nodes, which alone know their status and team. The role `coordinator` lists
    all handoffs outside teamspaces; for a human's key, those that are not restricted."""
    agent = identity(ctx.caller.agent_id)
    if params.role == "coordinator":
        _check_oversees(ctx)
    everything = False
    if params.team is not None:
        everything = authority.role_of(teams.members(ctx.db, params.team), agent) is not None
    held_here = handoffs.listed(
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
    ids = [handoff.handoff_id for handoff in held_here] + [entry.handoff_id for entry in away]
    ids.sort(reverse=True)
    page = set(ids[: params.limit])
    shown = [
        case
        for handoff in held_here
        if handoff.handoff_id in page and may_see(ctx, case := case_of(ctx, handoff.handoff_id))
    ]
    result: dict[str, Any] = {"handoffs": [summary(case.handoff) for case in shown]}
    if away:
        result["elsewhere"] = [
            present({"handoffId": entry.handoff_id, "taskId": entry.task_id, "node": entry.node})
            for entry in away
            if entry.handoff_id in page
        ]
    if len(ids) > params.limit:
        result["nextCursor"] = ids[params.limit - 1]
    return result


def _check_oversees(ctx: Context) -> None:
    if not coordinates(ctx):
        raise Forbidden(
            "role: 'coordinator' needs the operator's key (`cacp call --operator`), a human's key, "
            "or the key of an agent of CACP_ACP_COORDINATORS; leave it out to list your own "
            "handoffs",
            reason="role_authority",
        )


def visible(ctx: Context, params: HandoffParams) -> HandoffCase:
    """The handoff. Raises NotFound when there is none or the caller may not see it."""
    case = case_of(ctx, str(params.handoff_id))
    if not may_see(ctx, case):
        raise no_handoff(ctx, case.handoff.handoff_id)
    return case


def may_see(ctx: Context, case: HandoffCase) -> bool:
    """Whether the caller may see the handoff: its parties, former owners of the task, coordinators,
    and members of its teamspace. Of a restricted one, only members who may approve it; of a draft,
    only its sender."""
    agent = ctx.caller.agent_id
    if case.status == "draft":
        return same_agent(agent, case.handoff.from_agent)
    if roles_of(ctx, case) or any(same_agent(agent, owner) for owner in case.handoff.chain):
        return True
    member = authority.role_of(case.members, agent)
    if case.restricted:
        return authority.may("approve_handoff", member, guarded=True)
    return member is not None


def summary(handoff: Handoff) -> dict[str, Any]:
    """The HandoffSummary object."""
    shown = {
        "handoffId": handoff.handoff_id,
        "threadId": handoff.thread_id,
        "taskId": handoff.task_id,
        "fromAgent": handoff.from_agent,
        "toAgent": handoff.to_agent,
        "title": handoff.title,
        "reason": handoff.reason,
        "status": handoff.status,
        "team": handoff.team,
        "handedOnFrom": handoff.previous,
        "waitsFor": waits_for(handoff),
        "workq": handoff.workq,
        "packageHash": handoff.package_hash,
        "initiatedAt": handoff.initiated_at,
        "dueAt": None if handoff.due_at is None else iso(handoff.due_at),
        "escalatedAt": None if handoff.escalated_at is None else iso(handoff.escalated_at),
        "resolvedAt": handoff.resolved_at,
        "resolutionNotes": handoff.resolution_notes,
    }
    return present(shown)


def answer(ctx: Context, case: HandoffCase) -> dict[str, Any]:
    """The HandoffResult: the handoff and what the caller may do next."""
    handoff = case.handoff
    roles = roles_of(ctx, case)
    hints = HINTS | WITHDRAWS if roles == ("sender",) else HINTS
    may = [hints.get(step, step) for step in domain.may_do(case.status, roles)]
    waits = waits_for(handoff)
    next_step = f"You may now: {', '.join(may)}." if may else ""
    if waits and handoff.status != "draft":
        next_step = f"{next_step} It waits for: {', '.join(waits)}.".strip()
    if handoff.workq == "manual":
        next_step = f"{next_step} Move its workq items by hand: the node can't do it.".strip()
    return {"handoff": summary(handoff), "nextStep": next_step or "There is nothing for you to do."}
