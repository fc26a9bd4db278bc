"""acp/handoff: work that changes hands (acp-canonical §7, §11)."""

from collections.abc import Callable
from typing import Any

from schemas.handoff import HandoffParams, HandoffResult
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.acp.handoff import Role, Step
from server.domain.agents import same_agent
from server.domain.errors import Conflict, Forbidden
from server.methods.acp.delivery import audit
from server.methods.acp.refusals import SENDING
from server.methods.base import Context, writes
from server.methods.handoff.notify import tell
from server.methods.handoff.offer import check_may_work, initiate, propose
from server.methods.handoff.ownership import REFUSED, check_held_here
from server.methods.handoff.transitions import (
    Transition,
    case_of,
    decide,
    give_back,
    record,
    restore_previous,
    roles_of,
    settle,
    settle_owner,
    waits_for,
    write,
)
from server.methods.handoff.view import answer, get, history, list_, summary, visible
from server.store import handoffs, teams
from server.store.handoffs import Handoff


@writes("acp/handoff", HandoffParams, HandoffResult, guard=SENDING)
def handoff(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Hand work on: initiate, propose, accept, reject, activate, complete, close, approve, revoke;
    get, list and history. What another node has offered is asked of that node."""
    check_held_here(ctx, params)
    return ACTIONS[params.action](ctx, params)


# --- the receiver -------------------------------------------------------------------------------


def _accept(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    found = case.handoff
    if found.status in ("validating", "accepted") and same_agent(
        ctx.caller.agent_id, found.to_agent
    ):
        return answer(ctx, case)
    after, role = decide(ctx, case, "accept")
    if params.package_hash not in (None, found.package_hash):
        raise Conflict(
            "package_hash: not that of this handoff's package; read it again with action 'get'",
            reason="hash_mismatch",
            packageHash=found.package_hash,
        )
    if case.members:
        task = teams.task(ctx.db, found.task_id)
        check_may_work(
            authority.role_of(case.members, found.to_agent), task.kind if task else "execution"
        )
    said = f"{found.title}: {found.to_agent} accepts the handoff"
    tell(ctx, case.package, found.team, "handoff.accept", said, to=(found.from_agent,))
    if params.session_key is not None:
        handoffs.put_session(ctx.db, found.handoff_id, params.session_key)
    case = write(ctx, case, "accept", after, role)
    reasons = {one["artifact_id"]: _unchecked(ctx, one["ref"]) for one in _artifacts(case)}
    if None not in reasons.values():
        unchecked = [
            {"artifactId": artifact_id, "outcome": "unchecked", "detail": str(why)}
            for artifact_id, why in reasons.items()
        ]
        handoffs.put_artifacts(ctx.db, found.handoff_id, unchecked)
    return answer(ctx, settle(ctx, case_of(ctx, found.handoff_id), tell_receiver=False))


def _artifacts(case: Transition) -> list[dict[str, Any]]:
    artifacts: list[dict[str, Any]] = case.package["artifacts"]
    return artifacts


def _unchecked(ctx: Context, ref: dict[str, Any]) -> str | None:
    """Why an artifact is not looked for here; None for one that is."""
    why = domain.why_unchecked(ref)
    if why is None and not ctx.node.handoffs.checks_files:
        return "this node checks no files (CACP_ARTIFACT_ROOTS)"
    return why


def _activate(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    found = case.handoff
    after, role = decide(ctx, case, "activate")
    said = f"{found.title}: {found.to_agent} has begun"
    tell(ctx, case.package, found.team, "status.update", said, to=(found.from_agent,))
    return answer(ctx, write(ctx, case, "activate", after, role))


def _complete(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """From `accepted` too: the step to `activated` is written then as well."""
    case = visible(ctx, params)
    found = case.handoff
    roles = roles_of(ctx, case)
    step: Step = "activate" if found.status == "accepted" else "complete"
    after, role = domain.move(found.status, step, roles)
    task = teams.task(ctx.db, found.task_id)
    if task is not None and task.status == "blocked":
        raise Conflict(
            f"The task is blocked ({task.block_code}): {task.block_detail}",
            reason="task_blocked",
            code=task.block_code,
        )
    tell(
        ctx,
        case.package,
        found.team,
        "handoff.complete",
        f"{found.title}: {params.summary}",
        to=found.chain,
    )
    if step == "activate":
        case = write(ctx, case, "activate", after, role)
        after, role = domain.move(case.status, "complete", roles)
    case = write(ctx, case, "complete", after, role, detail=params.summary)
    handoffs.put_due(ctx.db, found.handoff_id, None)
    teams.put_task_status(ctx.db, found.task_id, "completed")
    return answer(ctx, case_of(ctx, found.handoff_id))


# --- either, and who watches over them ----------------------------------------------------------


def _reject(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """By the receiver or the coordinator; by the sender it is a withdrawal."""
    case = visible(ctx, params)
    found = case.handoff
    after, role = decide(ctx, case, "reject")
    assert params.code is not None
    if found.status != "draft":
        said = f"{found.title}: " + (
            "the sender withdraws the handoff" if role == "sender" else "the handoff is rejected"
        )
        tell(
            ctx,
            case.package,
            found.team,
            "handoff.reject",
            said,
            to=_others(ctx, found),
            reason=params.code,
            detail=str(params.detail),
            ended=after,
        )
    case = write(ctx, case, "reject", after, role, code=params.code, detail=params.detail)
    restore_previous(ctx, found)
    return answer(ctx, case)


def _revoke(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    found = case.handoff
    after, role = decide(ctx, case, "revoke")
    said = f"{found.title}: the coordinator takes the task back: {params.detail}"
    others = _others(ctx, found)
    tell(ctx, case.package, found.team, "status.update", said, to=others, ended=after)
    write(ctx, case, "revoke", after, role, detail=params.detail)
    give_back(ctx, found)
    return answer(ctx, case_of(ctx, found.handoff_id))


def _close(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    found = case.handoff
    roles: tuple[Role, ...] = roles_of(ctx, case)
    member = authority.role_of(case.members, ctx.caller.agent_id)
    if authority.may("close_high_risk", member):
        roles = (*roles, "approver")
    elif found.team is not None and _is_high_risk(ctx, case) and roles:
        authority.check("close_high_risk", member)
    after, role = domain.move(found.status, "close", roles)
    said = f"{found.title}: the work is taken, the handoff is closed"
    others = _others(ctx, found)
    tell(ctx, case.package, found.team, "status.complete", said, to=others, ended=after)
    case = write(ctx, case, "close", after, role, detail=params.summary)
    settle_owner(ctx, found.task_id)
    return answer(ctx, case)


def _is_high_risk(ctx: Context, case: Transition) -> bool:
    task = teams.task(ctx.db, case.handoff.task_id)
    urgent = case.package["task"]["priority"] == "critical"
    return case.restricted or urgent or bool(task and task.high_risk)


def _approve(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """By a human's key what the package requires a human for; by a member of the teamspace what
    comes into it from outside (§8.4)."""
    case = visible(ctx, params)
    found = case.handoff
    if "human" in roles_of(ctx, case):
        return answer(ctx, approve(ctx, case, human=True, detail=params.detail))
    if not found.team_gate:
        raise Forbidden(
            "This handoff waits for no member of a teamspace; only a human's key may approve it",
            reason="human_needed",
        )
    member = authority.role_of(case.members, ctx.caller.agent_id)
    authority.check("approve_handoff", member, guarded=case.guarded)
    return answer(ctx, approve(ctx, case, human=False, detail=params.detail))


def decided_by_human(
    ctx: Context, handoff_id: str, *, approved: bool, detail: str | None
) -> dict[str, Any] | None:
    """The HandoffSummary after a human has approved or refused; None when there is no such handoff
    that a human has a say in. The caller's key is a human's (`acp/approve`)."""
    found = handoffs.find(ctx.db, handoff_id)
    if found is None or "human" not in roles_of(ctx, case_of(ctx, handoff_id)):
        return None
    if approved:
        return summary(approve(ctx, case_of(ctx, handoff_id), human=True, detail=detail).handoff)
    params = HandoffParams(
        action="reject", handoff_id=handoff_id, code="other", detail=detail or REFUSED
    )
    refused: dict[str, Any] = _reject(ctx, params)["handoff"]
    return refused


def approve(
    ctx: Context, case: Transition, *, human: bool, detail: str | None = None
) -> Transition:
    """Approve a handoff as the caller, who has been found to be entitled to it."""
    found = case.handoff
    if found.status not in ("proposed", "validating"):
        raise Conflict(
            f"The handoff is {found.status}: nothing is to be approved",
            reason="not_waiting",
            status=found.status,
        )
    gate = "human_approval" if human else "team_approval"
    if gate not in waits_for(found):
        return case
    handoffs.put_approval(ctx.db, found.handoff_id, ctx.caller.agent_id, human=human)
    role = "human" if human else "approver"
    record(ctx, found, gate, found.status, role, before=found.status, detail=detail)
    audit(ctx, "approved", found.handoff_id, gate=gate)
    return settle(ctx, case_of(ctx, found.handoff_id))


def _others(ctx: Context, found: Handoff) -> tuple[str, ...]:
    """Both parties, but for the one who acts."""
    both = (found.from_agent, found.to_agent)
    return tuple(one for one in both if not same_agent(one, ctx.caller.agent_id))


ACTIONS: dict[str, Callable[[Context, HandoffParams], dict[str, Any]]] = {
    "initiate": initiate,
    "propose": propose,
    "accept": _accept,
    "reject": _reject,
    "activate": _activate,
    "complete": _complete,
    "close": _close,
    "approve": _approve,
    "revoke": _revoke,
    "get": get,
    "list": list_,
    "history": history,
}
