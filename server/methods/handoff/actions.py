"""acp/handoff: handing work from one agent to another (acp-canonical §7, §11)."""

from collections.abc import Callable
from typing import Any

from schemas.handoff import HandoffParams, HandoffResult
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.acp.handoff import HeldElsewhere, Role, Step
from server.domain.agents import same_agent
from server.domain.errors import Conflict, Forbidden
from server.methods.acp.delivery import audit
from server.methods.acp.refusals import SENDING
from server.methods.base import Context, writes
from server.methods.cacp.handoff_evidence import with_evidence
from server.methods.handoff.check import check_acceptance
from server.methods.handoff.notify import tell
from server.methods.handoff.offer import check_may_work, initiate, propose
from server.methods.handoff.ownership import REFUSED, call_held_elsewhere
from server.methods.handoff.transitions import (
    HandoffCase,
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
def handoff(ctx: Context, params: HandoffParams) -> dict[str, Any] | HeldElsewhere:
    """Hand work to another agent: initiate, propose, accept, reject, activate, complete, close,
    approve, revoke; get, list and history. A call about a handoff of another node is forwarded to
    that node."""
    elsewhere = call_held_elsewhere(ctx, params)
    if elsewhere is not None:
        return elsewhere
    check_acceptance(ctx, params)
    answer = ACTIONS[params.action](ctx, params)
    return with_evidence(ctx.db, ctx.node.handoffs, answer, ctx.caller.agent_id)


# --- the receiver -------------------------------------------------------------------------------


def _accept(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    handoff = case.handoff
    if handoff.status in ("validating", "accepted") and same_agent(
        ctx.caller.agent_id, handoff.to_agent
    ):
        return answer(ctx, case)
    after, role = decide(ctx, case, "accept")
    if params.package_hash not in (None, handoff.package_hash):
        raise Conflict(
            "package_hash: differs from this handoff's package; fetch the handoff with action "
            "'get'",
            reason="hash_mismatch",
            packageHash=handoff.package_hash,
        )
    if case.members:
        task = teams.task(ctx.db, handoff.task_id)
        check_may_work(
            authority.role_of(case.members, handoff.to_agent), task.kind if task else "execution"
        )
    text = f"{handoff.title}: {handoff.to_agent} accepts the handoff"
    tell(ctx, case.package, handoff.team, "handoff.accept", text, to=(handoff.from_agent,))
    if params.session_key is not None:
        handoffs.put_session(ctx.db, handoff.handoff_id, params.session_key)
    case = write(ctx, case, "accept", after, role)
    reasons = {
        artifact["artifact_id"]: _unchecked(ctx, artifact["ref"]) for artifact in _artifacts(case)
    }
    if None not in reasons.values():
        unchecked = [
            {"artifactId": artifact_id, "outcome": "unchecked", "detail": str(why)}
            for artifact_id, why in reasons.items()
        ]
        handoffs.put_artifacts(ctx.db, handoff.handoff_id, unchecked)
    return answer(ctx, settle(ctx, case_of(ctx, handoff.handoff_id), tell_receiver=False))


def _artifacts(case: HandoffCase) -> list[dict[str, Any]]:
    artifacts: list[dict[str, Any]] = case.package["artifacts"]
    return artifacts


def _unchecked(ctx: Context, ref: dict[str, Any]) -> str | None:
    """Why this node does not check an artifact; None when it does."""
    why = domain.why_unchecked(ref)
    if why is None and not ctx.node.handoffs.checks_files:
        return "this node does not check files (CACP_ARTIFACT_ROOTS)"
    return why


def _activate(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    handoff = case.handoff
    after, role = decide(ctx, case, "activate")
    text = f"{handoff.title}: {handoff.to_agent} has begun"
    tell(ctx, case.package, handoff.team, "status.update", text, to=(handoff.from_agent,))
    return answer(ctx, write(ctx, case, "activate", after, role))


def _complete(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Complete the work; from `accepted`, the step to `activated` is recorded first."""
    case = visible(ctx, params)
    handoff = case.handoff
    roles = roles_of(ctx, case)
    step: Step = "activate" if handoff.status == "accepted" else "complete"
    after, role = domain.move(handoff.status, step, roles)
    task = teams.task(ctx.db, handoff.task_id)
    if task is not None and task.status == "blocked":
        raise Conflict(
            f"The task is blocked ({task.block_code}): {task.block_detail}",
            reason="task_blocked",
            code=task.block_code,
        )
    tell(
        ctx,
        case.package,
        handoff.team,
        "handoff.complete",
        f"{handoff.title}: {params.summary}",
        to=handoff.chain,
    )
    if step == "activate":
        case = write(ctx, case, "activate", after, role)
        after, role = domain.move(case.status, "complete", roles)
    case = write(ctx, case, "complete", after, role, detail=params.summary)
    handoffs.put_due(ctx.db, handoff.handoff_id, None)
    teams.put_task_status(ctx.db, handoff.task_id, "completed")
    return answer(ctx, case_of(ctx, handoff.handoff_id))


# --- both parties and coordinators ----------------------------------------------------------


def _reject(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Reject, as the receiver, the coordinator or a human; the sender withdraws the offer so."""
    case = visible(ctx, params)
    handoff = case.handoff
    after, role = decide(ctx, case, "reject")
    assert params.code is not None
    if handoff.status != "draft":
        text = f"{handoff.title}: " + (
            "the sender withdraws the handoff" if role == "sender" else "the handoff is rejected"
        )
        tell(
            ctx,
            case.package,
            handoff.team,
            "handoff.reject",
            text,
            to=_others(ctx, handoff),
            reason=params.code,
            detail=str(params.detail),
            status=after,
        )
    case = write(ctx, case, "reject", after, role, code=params.code, detail=params.detail)
    restore_previous(ctx, handoff)
    return answer(ctx, case)


def _revoke(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    handoff = case.handoff
    after, role = decide(ctx, case, "revoke")
    text = f"{handoff.title}: the coordinator takes the task back: {params.detail}"
    others = _others(ctx, handoff)
    tell(ctx, case.package, handoff.team, "status.update", text, to=others, status=after)
    write(ctx, case, "revoke", after, role, detail=params.detail)
    give_back(ctx, handoff)
    return answer(ctx, case_of(ctx, handoff.handoff_id))


def _close(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    case = visible(ctx, params)
    handoff = case.handoff
    roles: tuple[Role, ...] = roles_of(ctx, case)
    member = authority.role_of(case.members, ctx.caller.agent_id)
    if authority.may("close_high_risk", member):
        roles = (*roles, "approver")
    elif handoff.team is not None and _is_high_risk(ctx, case) and roles:
        authority.check("close_high_risk", member)
    after, role = domain.move(handoff.status, "close", roles)
    text = f"{handoff.title}: the work is accepted, the handoff is closed"
    others = _others(ctx, handoff)
    tell(ctx, case.package, handoff.team, "status.complete", text, to=others, status=after)
    case = write(ctx, case, "close", after, role, detail=params.summary)
    settle_owner(ctx, handoff.task_id)
    return answer(ctx, case)


def _is_high_risk(ctx: Context, case: HandoffCase) -> bool:
    task = teams.task(ctx.db, case.handoff.task_id)
    urgent = case.package["task"]["priority"] == "critical"
    return case.restricted or urgent or bool(task and task.high_risk)


def _approve(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Approve, with a human's key where the package requires human approval, else as a member of
    the teamspace that the handoff enters from outside (§8.4)."""
    case = visible(ctx, params)
    handoff = case.handoff
    if "human" in roles_of(ctx, case):
        return answer(ctx, approve(ctx, case, human=True, detail=params.detail))
    if not handoff.team_gate:
        raise Forbidden(
            "This handoff needs no approval from a teamspace; only a human's key may approve it",
            reason="human_needed",
        )
    member = authority.role_of(case.members, ctx.caller.agent_id)
    authority.check("approve_handoff", member, guarded=case.guarded)
    return answer(ctx, approve(ctx, case, human=False, detail=params.detail))


def decided_by_human(
    ctx: Context, handoff_id: str, *, approved: bool, detail: str | None
) -> dict[str, Any] | None:
    """The HandoffSummary after a human's decision on a handoff; None when there is no such handoff
    that a human decides on. The caller's key is a human's (`acp/approve`)."""
    handoff = handoffs.find(ctx.db, handoff_id)
    if handoff is None or "human" not in roles_of(ctx, case_of(ctx, handoff_id)):
        return None
    if approved:
        return summary(approve(ctx, case_of(ctx, handoff_id), human=True, detail=detail).handoff)
    params = HandoffParams(
        action="reject", handoff_id=handoff_id, code="other", detail=detail or REFUSED
    )
    refused: dict[str, Any] = _reject(ctx, params)["handoff"]
    return refused


def approve(
    ctx: Context, case: HandoffCase, *, human: bool, detail: str | None = None
) -> HandoffCase:
    """Approve a handoff as the caller, whose authority has been checked."""
    handoff = case.handoff
    if handoff.status not in ("proposed", "validating"):
        raise Conflict(
            f"The handoff is {handoff.status} and is not awaiting approval",
            reason="not_waiting",
            status=handoff.status,
        )
    gate = "human_approval" if human else "team_approval"
    if gate not in waits_for(handoff):
        return case
    handoffs.put_approval(ctx.db, handoff.handoff_id, ctx.caller.agent_id, human=human)
    role = "human" if human else "approver"
    record(ctx, handoff, gate, handoff.status, role, before=handoff.status, detail=detail)
    audit(ctx, "approved", handoff.handoff_id, gate=gate)
    return settle(ctx, case_of(ctx, handoff.handoff_id))


def _others(ctx: Context, handoff: Handoff) -> tuple[str, ...]:
    """The parties other than the caller."""
    both = (handoff.from_agent, handoff.to_agent)
    return tuple(agent_id for agent_id in both if not same_agent(agent_id, ctx.caller.agent_id))


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
