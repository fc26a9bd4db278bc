"""Writing the steps of a handoff: the messages to its parties, the task's owner, the logs.

A method takes a step for its caller; the node takes some by itself (acp-canonical §7.2). Each step
is decided first (`server.domain.acp.handoff`), then announced, then written: when the message can't
be sent, the step is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import ValidationError

from schemas.acp import HandoffRejectReason
from schemas.base import iso, present
from schemas.handoff import ACPHandoffPackage, HandoffStatus
from schemas.teamspace import TeamRole
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.acp.handoff import HandoffProblem, OwnershipGrant, Parties, Role, Step
from server.domain.agents import identity
from server.domain.errors import NotFound
from server.methods.acp.delivery import coordinates
from server.methods.acp.mail import Envelope
from server.methods.base import Context
from server.methods.handoff.notify import tell
from server.store import handoffs, teams
from server.store.handoffs import Handoff
from server.store.teams import TaskRow

REJECTING: tuple[HandoffRejectReason, ...] = (
    "policy_violation",
    "missing_artifact",
    "hash_mismatch",
)


@dataclass(frozen=True, slots=True)
class HandoffCase:
    """A handoff with its parties and the members of its teamspace."""

    handoff: Handoff
    parties: Parties
    members: Mapping[str, TeamRole]

    @property
    def package(self) -> dict[str, Any]:
        return self.handoff.package

    @property
    def status(self) -> HandoffStatus:
        status: HandoffStatus = self.handoff.status
        return status

    @property
    def restricted(self) -> bool:
        return bool(self.package["policy"]["classification"] == "restricted")

    @property
    def needs_human(self) -> bool:
        return bool(self.package["policy"]["requires_human_approval"])

    @property
    def guarded(self) -> bool:
        """Whether it is in a guarded class, which a reviewer may approve (§8.4)."""
        return self.restricted or self.needs_human


def case_of(ctx: Context, handoff_id: str) -> HandoffCase:
    """The handoff as it is stored. Raises NotFound."""
    handoff = handoffs.find(ctx.db, handoff_id)
    if handoff is None:
        raise no_handoff(ctx, handoff_id)
    members = teams.members(ctx.db, handoff.team) if handoff.team else {}
    parties = Parties(handoff.from_agent, handoff.to_agent, authority.coordinators(members))
    return HandoffCase(handoff, parties, members)


def no_handoff(ctx: Context, handoff_id: str) -> NotFound:
    """The same whether there is none or the caller may not see it."""
    without_key = ctx.caller.via == "local"
    hint = (
        " of the node's own agent. A coordinator calls with the operator's key "
        "(`cacp call --operator`) or a human's"
    )
    return NotFound(
        f"There is no handoff {handoff_id}{hint if without_key else ''}",
        kind="handoff",
        handoffId=handoff_id,
    )


def told_when_overdue(ctx: Context, case: HandoffCase) -> tuple[str, ...]:
    """The coordinators of the teamspace; without a teamspace, the agents that the operator has
    named, else the node's own agent."""
    if case.handoff.team is not None:
        return case.parties.coordinators
    named = tuple(sorted(ctx.node.acp.coordinators))
    return named or (identity(ctx.node.agent_id),)


def decide(ctx: Context, case: HandoffCase, step: Step) -> tuple[HandoffStatus, Role]:
    """The state after the caller's step, and the role in which the caller takes it. Raises
    Forbidden or IllegalTransition."""
    return domain.move(case.status, step, roles_of(ctx, case))


def roles_of(ctx: Context, case: HandoffCase) -> tuple[Role, ...]:
    """Every role that the caller has in the handoff."""
    roles = case.parties.roles_of(ctx.caller.agent_id)
    if case.handoff.team is None and coordinates(ctx, restricted=case.restricted):
        roles = (*roles, "coordinator")
    if ctx.caller.human and case.needs_human:
        roles = (*roles, "human")
    return roles


def as_node(ctx: Context) -> Context:
    """The same transaction with the node's own agent as the caller."""
    return replace(ctx, caller=ctx.node.caller)


def write(
    ctx: Context,
    case: HandoffCase,
    step: Step,
    after: HandoffStatus,
    role: Role | str,
    *,
    code: HandoffRejectReason | None = None,
    detail: str | None = None,
) -> HandoffCase:
    """Write a decided step: status, history, the teamspace's log, the change log."""
    handoff = case.handoff
    ended = after in ("rejected", "completed", "closed")
    notes = f"{code}: {detail}" if code else detail
    if after != handoff.status:
        handoffs.put_status(
            ctx.db,
            handoff.handoff_id,
            after,
            resolved=ctx.stamp if ended else None,
            notes=notes if ended and notes else handoff.resolution_notes,
        )
    if after == "rejected":
        handoffs.put_due(ctx.db, handoff.handoff_id, None)
    record(ctx, handoff, step, after, role, before=handoff.status, code=code, detail=detail)
    return case_of(ctx, handoff.handoff_id)


def record(
    ctx: Context,
    handoff: Handoff,
    step: str,
    after: str,
    role: str,
    *,
    before: str | None,
    code: str | None = None,
    detail: str | None = None,
) -> None:
    """Append a step to the history and the logs."""
    handoffs.append(
        ctx.db,
        handoff.handoff_id,
        step=step,
        before=before,
        after=after,
        actor=ctx.caller.agent_id,
        role=role,
        code=code,
        detail=detail,
        stamp=ctx.stamp,
    )
    if handoff.team is not None:
        # All members read the log, but not all of them may see a restricted handoff.
        restricted = handoff.package["policy"]["classification"] == "restricted"
        line = {
            "at": iso(ctx.stamp),
            "handoff_id": handoff.handoff_id,
            "task_id": handoff.task_id,
            "step": step,
            "before": before,
            "after": after,
            "actor": ctx.caller.agent_id,
            "role": role,
            "code": code,
            "detail": None if restricted else detail,
        }
        teams.log(ctx.db, handoff.team, "handoffs", present(line))
    ctx.record("handoff", handoff.handoff_id, None, step)


# --- validating ---------------------------------------------------------------------------------


def waits_for(handoff: Handoff) -> list[str]:
    """The approvals and checks that the handoff still waits for."""
    if handoff.status not in ("draft", "proposed", "validating"):
        return []
    waits = []
    if handoff.package["policy"]["requires_human_approval"] and handoff.human_approval is None:
        waits.append("human_approval")
    if handoff.team_gate and handoff.team_approval is None:
        waits.append("team_approval")
    if handoff.status == "validating" and handoff.artifacts is None:
        waits.append("artifacts")
    return waits


def settle(ctx: Context, case: HandoffCase, *, tell_receiver: bool = True) -> HandoffCase:
    """Accept or reject a validating handoff once it waits for nothing (§7.2 rule 4)."""
    handoff = case.handoff
    if handoff.status != "validating" or waits_for(handoff):
        return case
    problem = _problem(handoff)
    if problem is not None:
        reject(ctx, case, "fail", "the node rejected the handoff", problem)
        return case_of(ctx, handoff.handoff_id)
    return _pass(ctx, case, tell_receiver)


def _problem(handoff: Handoff) -> HandoffProblem | None:
    """The first check that fails, in the order schema, hash, policy, artifacts."""
    try:
        package = ACPHandoffPackage.model_validate_json(handoff.package_json)
    except ValidationError:
        return HandoffProblem(
            "schema_invalid", "the stored package does not match the schema of version 1.0.0"
        )
    if domain.package_hash(handoff.package) != handoff.package_hash:
        return HandoffProblem("hash_mismatch", "the stored package differs from its hash")
    against = domain.policy_problem(package.policy, handoff.to_agent)
    if against is not None:
        return against
    for check in orjson.loads(handoff.artifacts or "[]"):
        if check["outcome"] in REJECTING:
            return HandoffProblem(check["outcome"], f"{check['artifactId']}: {check['detail']}")
    return None


def _pass(ctx: Context, case: HandoffCase, tell_receiver: bool) -> HandoffCase:
    handoff, node = case.handoff, as_node(ctx)
    after, role = domain.move(handoff.status, "pass", ("node",))
    if tell_receiver:
        text = f"{handoff.title}: the handoff is accepted, {handoff.to_agent} owns the task now"
        tell(
            node,
            case.package,
            handoff.team,
            "status.update",
            text,
            to=(handoff.from_agent, handoff.to_agent),
            status=after,
        )
    case = write(node, case, "pass", after, role)
    _enter_task(ctx, handoff)
    settle_owner(ctx, handoff.task_id)
    rules = ctx.node.handoffs
    handoffs.put_due(ctx.db, handoff.handoff_id, domain.due(ctx.stamp, rules.sla_seconds))
    if handoff.previous is not None:
        handoffs.put_due(ctx.db, handoff.previous, None)
    _ask_workq(ctx, handoff, handoff.from_agent, handoff.to_agent)
    return case_of(ctx, handoff.handoff_id)


def reject(
    ctx: Context, case: HandoffCase, step: Step, text: str, problem: HandoffProblem
) -> Envelope | None:
    """Reject a handoff in the node's name; returns the message that tells both parties why. The
    task stays with the sender."""
    handoff, node = case.handoff, as_node(ctx)
    after, role = domain.move(handoff.status, step, ("node",))
    message = tell(
        node,
        case.package,
        handoff.team,
        "handoff.reject",
        f"{handoff.title}: {text}",
        to=(handoff.from_agent, handoff.to_agent),
        reason=problem.code,
        detail=problem.detail,
        status=after,
    )
    write(node, case, step, after, role, code=problem.code, detail=problem.detail)
    restore_previous(ctx, handoff)
    return message


def restore_previous(ctx: Context, ended: Handoff, *, anew: bool = False) -> None:
    """Reactivate the handoff by which the sender owned the task, after the next one has failed.

    `anew`: its timer had stopped, and starts again.
    """
    if ended.previous is None:
        return
    node = as_node(ctx)
    case = case_of(node, ended.previous)
    after, role = domain.move(case.status, "restore", ("node",))
    write(node, case, "restore", after, role, detail=f"{ended.handoff_id} was not taken over")
    if anew:
        due = domain.due(ctx.stamp, ctx.node.handoffs.sla_seconds)
        handoffs.put_escalated(ctx.db, ended.previous, None)
        handoffs.put_due(ctx.db, ended.previous, due)


def give_back(ctx: Context, handoff: Handoff) -> None:
    """Return a revoked task to its previous owner."""
    settle_owner(ctx, handoff.task_id)
    handoffs.put_due(ctx.db, handoff.handoff_id, None)
    restore_previous(ctx, handoff, anew=True)
    if handoff.workq in ("pending", "transferred"):
        _ask_workq(ctx, handoff, handoff.to_agent, handoff.from_agent)


# --- the task -----------------------------------------------------------------------------------


def _enter_task(ctx: Context, handoff: Handoff) -> None:
    """Store the task of an accepted handoff, which nobody had before."""
    known = teams.task(ctx.db, handoff.task_id)
    if known is not None and known.team in (None, handoff.team):
        if handoff.team is not None:
            teams.put_team(ctx.db, handoff.task_id, handoff.team)
        return
    # A task of a closed teamspace is free (`standing_task`).
    teams.drop_task(ctx.db, handoff.task_id)
    teams.insert_task(
        ctx.db,
        handoff.task_id,
        team=handoff.team,
        title=handoff.title,
        kind="execution",
        high_risk=False,
        created_by=handoff.from_agent,
        stamp=ctx.stamp,
    )


def settle_owner(ctx: Context, task_id: str) -> None:
    """Store the task's owner, as its history says. A task without an owner is deleted unless it
    belongs to a teamspace."""
    task = teams.task(ctx.db, task_id)
    if task is None:
        return
    granted = handoffs.grants(ctx.db, task_id)
    if task.assigned is not None:
        granted.append(OwnershipGrant((task.assigned,)))
    owned = domain.owner(granted)
    if owned is None and task.team is None:
        teams.drop_task(ctx.db, task_id)
    else:
        teams.put_owner(ctx.db, task_id, owned)


def standing_task(ctx: Context, task_id: str) -> TaskRow | None:
    """The task of this id if an agent or a teamspace has it; None when the id is free. A closed
    teamspace keeps only tasks that a member has accepted."""
    task = teams.task(ctx.db, task_id)
    if task is None or task.team is None or (task.owned and len(task.owned.chain) > 1):
        return task
    team = teams.find(ctx.db, task.team)
    return task if team is not None and team.status == "active" else None


# --- workq --------------------------------------------------------------------------------------


def _ask_workq(ctx: Context, handoff: Handoff, giver: str, taker: str) -> None:
    """Queue calls to workq, by which `giver` releases the task's items and `taker` claims them
    (§10.4)."""
    package = handoff.package
    refs = package["task"].get("external_refs") or []
    items = [ref["value"] for ref in refs if ref["type"] == "workq_item"]
    if not items:
        return
    status = "pending" if ctx.node.handoffs.workq else "manual"
    sessions = {
        handoff.from_agent: package["provenance"]["origin_session"],
        handoff.to_agent: handoff.session_key,
    }
    for item in items:
        for method, agent in (("workq.release", giver), ("workq.claim", taker)):
            handoffs.add_intent(
                ctx.db,
                handoff.handoff_id,
                method=method,
                item=item,
                agent_id=agent,
                session_key=sessions[agent],
                status=status,
            )
    handoffs.put_workq(ctx.db, handoff.handoff_id, status)
