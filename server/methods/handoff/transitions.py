"""The steps of a handoff, written down: who is told, who owns the task, what is logged.

A method takes a step for its caller, the node's own duties take theirs (acp-canonical §7.2). Each
step is decided first (`server.domain.acp.handoff`), then told, then written: a message that can't
be posted refuses the step.
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
from server.methods.acp.mail import Envelope
from server.methods.base import Context
from server.methods.handoff.notify import tell
from server.store import handoffs, teams
from server.store.handoffs import Handoff
from server.store.teams import TeamTask

REJECTING: tuple[HandoffRejectReason, ...] = (
    "policy_violation",
    "missing_artifact",
    "hash_mismatch",
)


@dataclass(frozen=True, slots=True)
class Transition:
    """A handoff, and who is who in it."""

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
    def is_open_offer(self) -> bool:
        """Whether it keeps a task that nobody has yet, and is nothing that a human may not list."""
        offered = self.status in domain.OFFERED and self.handoff.team is None
        return offered and not self.restricted

    @property
    def guarded(self) -> bool:
        """Whether it is of a class that a reviewer may approve (§8.4)."""
        return self.restricted or self.needs_human


def case_of(ctx: Context, handoff_id: str) -> Transition:
    """Raises NotFound."""
    found = handoffs.find(ctx.db, handoff_id)
    if found is None:
        raise NotFound(f"There is no handoff {handoff_id}", kind="handoff", handoffId=handoff_id)
    members = teams.members(ctx.db, found.team) if found.team else {}
    parties = Parties(found.from_agent, found.to_agent, coordinators_of(ctx, found.team, members))
    return Transition(found, parties, members)


def coordinators_of(
    ctx: Context, team: str | None, members: Mapping[str, TeamRole]
) -> tuple[str, ...]:
    """Who coordinates: the teamspace's coordinators; without one, those whom the operator named,
    else the node's own agent."""
    if team is not None:
        return authority.coordinators(members)
    named = tuple(sorted(ctx.node.acp.coordinators))
    return named or (identity(ctx.node.agent_id),)


def decide(ctx: Context, case: Transition, step: Step) -> tuple[HandoffStatus, Role]:
    """The state after the caller's step, and its role. Raises Forbidden or IllegalTransition."""
    return domain.move(case.status, step, roles_of(ctx, case))


def roles_of(ctx: Context, case: Transition) -> tuple[Role, ...]:
    """Every role in which the caller meets the handoff."""
    roles = case.parties.roles_of(ctx.caller.agent_id)
    if ctx.caller.human and case.needs_human:
        return (*roles, "human")
    return roles


def as_node(ctx: Context) -> Context:
    """The same transaction, with the node itself as the one who acts."""
    return replace(ctx, caller=ctx.node.caller)


def write(
    ctx: Context,
    case: Transition,
    step: Step,
    after: HandoffStatus,
    role: Role | str,
    *,
    code: HandoffRejectReason | None = None,
    detail: str | None = None,
) -> Transition:
    """Write a step that is decided: status, history, the teamspace's log, the change log."""
    found = case.handoff
    ended = after in ("rejected", "completed", "closed")
    notes = f"{code}: {detail}" if code else detail
    if after != found.status:
        handoffs.put_status(
            ctx.db,
            found.handoff_id,
            after,
            resolved=ctx.stamp if ended else None,
            notes=notes if ended and notes else found.resolution_notes,
        )
    if after == "rejected":
        handoffs.put_due(ctx.db, found.handoff_id, None)
    record(ctx, found, step, after, role, before=found.status, code=code, detail=detail)
    return case_of(ctx, found.handoff_id)


def record(
    ctx: Context,
    found: Handoff,
    step: str,
    after: str,
    role: str,
    *,
    before: str | None,
    code: str | None = None,
    detail: str | None = None,
) -> None:
    """Append to the history and to the logs; nothing else changes."""
    handoffs.append(
        ctx.db,
        found.handoff_id,
        step=step,
        before=before,
        after=after,
        actor=ctx.caller.agent_id,
        role=role,
        code=code,
        detail=detail,
        stamp=ctx.stamp,
    )
    if found.team is not None:
        # A log's readers are all members, who may not all see what is restricted.
        restricted = found.package["policy"]["classification"] == "restricted"
        line = {
            "at": iso(ctx.stamp),
            "handoff_id": found.handoff_id,
            "task_id": found.task_id,
            "step": step,
            "before": before,
            "after": after,
            "actor": ctx.caller.agent_id,
            "role": role,
            "code": code,
            "detail": None if restricted else detail,
        }
        teams.log(ctx.db, found.team, "handoffs", present(line))
    ctx.record("handoff", found.handoff_id, None, step)


# --- validating ---------------------------------------------------------------------------------


def waits_for(found: Handoff) -> list[str]:
    """What a handoff still needs before it can be accepted."""
    if found.status not in ("draft", "proposed", "validating"):
        return []
    waits = []
    if found.package["policy"]["requires_human_approval"] and found.human_approval is None:
        waits.append("human_approval")
    if found.team_gate and found.team_approval is None:
        waits.append("team_approval")
    if found.status == "validating" and found.artifacts is None:
        waits.append("artifacts")
    return waits


def settle(ctx: Context, case: Transition, *, tell_receiver: bool = True) -> Transition:
    """Accept or reject a handoff that is validating, once nothing is waited for (§7.2 rule 4)."""
    found = case.handoff
    if found.status != "validating" or waits_for(found):
        return case
    problem = _problem(found)
    if problem is not None:
        reject(ctx, case, "fail", "the node rejected the handoff", problem)
        return case_of(ctx, found.handoff_id)
    return _pass(ctx, case, tell_receiver)


def _problem(found: Handoff) -> HandoffProblem | None:
    """The first check that does not hold: schema, hash, policy, artifacts."""
    try:
        package = ACPHandoffPackage.model_validate_json(found.package_json)
    except ValidationError:
        return HandoffProblem("schema_invalid", "the stored package is not one of version 1.0.0")
    if domain.package_hash(found.package) != found.package_hash:
        return HandoffProblem("hash_mismatch", "the stored package is not what was hashed")
    against = domain.policy_problem(package.policy, found.to_agent)
    if against is not None:
        return against
    for check in orjson.loads(found.artifacts or "[]"):
        if check["outcome"] in REJECTING:
            return HandoffProblem(check["outcome"], f"{check['artifactId']}: {check['detail']}")
    return None


def _pass(ctx: Context, case: Transition, tell_receiver: bool) -> Transition:
    found, node = case.handoff, as_node(ctx)
    after, role = domain.move(found.status, "pass", ("node",))
    if tell_receiver:
        said = f"{found.title}: the handoff is accepted, {found.to_agent} owns the task now"
        tell(
            node,
            case.package,
            found.team,
            "status.update",
            said,
            to=(found.from_agent, found.to_agent),
        )
    case = write(node, case, "pass", after, role)
    _enter_task(ctx, found)
    settle_owner(ctx, found.task_id)
    rules = ctx.node.handoffs
    handoffs.put_due(ctx.db, found.handoff_id, domain.due(ctx.stamp, rules.sla_seconds))
    if found.previous is not None:
        handoffs.put_due(ctx.db, found.previous, None)
    _ask_workq(ctx, found, found.from_agent, found.to_agent)
    return case_of(ctx, found.handoff_id)


def reject(
    ctx: Context, case: Transition, step: Step, said: str, problem: HandoffProblem
) -> Envelope | None:
    """Reject a handoff in the node's name, by a step of its own; the message that tells both sides
    why. The sender has the task as before."""
    found, node = case.handoff, as_node(ctx)
    after, role = domain.move(found.status, step, ("node",))
    message = tell(
        node,
        case.package,
        found.team,
        "handoff.reject",
        f"{found.title}: {said}",
        to=(found.from_agent, found.to_agent),
        reason=problem.code,
        detail=problem.detail,
        ended=after,
    )
    write(node, case, step, after, role, code=problem.code, detail=problem.detail)
    restore_previous(ctx, found)
    return message


def restore_previous(ctx: Context, ended: Handoff, *, anew: bool = False) -> None:
    """When a handoff comes to nothing, its sender has the task as before, and its own timer.

    `anew`: the timer was stopped meanwhile, and begins again.
    """
    if ended.previous is None:
        return
    node = as_node(ctx)
    case = case_of(node, ended.previous)
    after, role = domain.move(case.status, "restore", ("node",))
    write(node, case, "restore", after, role, detail=f"{ended.handoff_id} came to nothing")
    if anew:
        due = domain.due(ctx.stamp, ctx.node.handoffs.sla_seconds)
        handoffs.put_escalated(ctx.db, ended.previous, None)
        handoffs.put_due(ctx.db, ended.previous, due)


def give_back(ctx: Context, found: Handoff) -> None:
    """After a revocation, who owned the task before has it again."""
    settle_owner(ctx, found.task_id)
    handoffs.put_due(ctx.db, found.handoff_id, None)
    restore_previous(ctx, found, anew=True)
    if found.workq in ("pending", "transferred"):
        _ask_workq(ctx, found, found.to_agent, found.from_agent)


# --- the task -----------------------------------------------------------------------------------


def _enter_task(ctx: Context, found: Handoff) -> None:
    """Enter the task of a handoff that is accepted: until then nobody has it."""
    known = teams.task(ctx.db, found.task_id)
    if known is not None and known.team in (None, found.team):
        if found.team is not None:
            teams.put_team(ctx.db, found.task_id, found.team)
        return
    # One of a teamspace that is closed was free (`standing_task`).
    teams.drop_task(ctx.db, found.task_id)
    teams.insert_task(
        ctx.db,
        found.task_id,
        team=found.team,
        title=found.title,
        kind="execution",
        high_risk=False,
        created_by=found.from_agent,
        stamp=ctx.stamp,
    )


def settle_owner(ctx: Context, task_id: str) -> None:
    """Write down who owns a task, by its history. One that nobody owns is free, and stays only in
    its teamspace."""
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


def standing_task(ctx: Context, task_id: str) -> TeamTask | None:
    """A task that somebody or a teamspace has; None when the id is free. A teamspace that is closed
    keeps none but those that a member has accepted."""
    found = teams.task(ctx.db, task_id)
    if found is None or found.team is None or (found.owned and len(found.owned.chain) > 1):
        return found
    team = teams.find(ctx.db, found.team)
    return found if team is not None and team.status == "active" else None


# --- workq --------------------------------------------------------------------------------------


def _ask_workq(ctx: Context, found: Handoff, giver: str, taker: str) -> None:
    """Leave word that workq's items are to be released by one party and claimed by the other
    (§10.4)."""
    package = found.package
    refs = package["task"].get("external_refs") or []
    items = [ref["value"] for ref in refs if ref["type"] == "workq_item"]
    if not items:
        return
    status = "pending" if ctx.node.handoffs.workq else "manual"
    sessions = {
        found.from_agent: package["provenance"]["origin_session"],
        found.to_agent: found.session_key,
    }
    for item in items:
        for method, agent in (("workq.release", giver), ("workq.claim", taker)):
            handoffs.add_intent(
                ctx.db,
                found.handoff_id,
                method=method,
                item=item,
                agent_id=agent,
                session_key=sessions[agent],
                status=status,
            )
    handoffs.put_workq(ctx.db, found.handoff_id, status)
