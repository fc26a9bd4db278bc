"""Offering work: `initiate` and `propose` (acp-canonical §7)."""

from dataclasses import dataclass
from typing import Any

from schemas.handoff import HandoffDraft, HandoffParams
from schemas.teamspace import TaskKind, TeamRole
from server.domain import canonical
from server.domain.acp import handoff as domain
from server.domain.acp import teams as authority
from server.domain.acp.policy import EVERYONE, check_waiting
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from server.methods.acp import mail
from server.methods.base import Context, new_id
from server.methods.handoff.notify import tell
from server.methods.handoff.transitions import (
    HandoffCase,
    case_of,
    decide,
    record,
    standing_task,
    write,
)
from server.methods.handoff.view import answer, may_see, visible
from server.store import handoffs, peers, teams
from server.store.handoffs import Handoff
from server.store.teams import TaskRow


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an offer implies: the chain of the task's owners, the active handoff that it replaces,
    its teamspace, and whether a member must approve it (`gated`)."""

    chain: tuple[str, ...]
    active: Handoff | None
    team: str | None
    gated: bool


def initiate(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Offer work to another agent; with `draft`, only store the offer."""
    draft = params.package
    assert draft is not None
    sender, receiver = identity(ctx.caller.agent_id), identity(str(params.to))
    given = draft.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    digest = canonical.digest([receiver, params.reason, params.team, given], "package")
    known = handoffs.find(ctx.db, draft.handoff_id) if draft.handoff_id else None
    if known is not None:
        return _repeated(ctx, known, sender, digest)
    _check_hash(draft, given)
    plan = _plan(ctx, draft.task.task_id, sender, receiver, params.team)
    domain.check_chain(draft.provenance.handoff_chain or (), plan.chain)
    problem = domain.policy_problem(draft.policy, receiver)
    if problem is not None:
        raise Forbidden(f"package.policy.{problem.detail}", reason="policy_violation")
    package = _whole(draft.handoff_id or new_id(), given, plan.chain)
    status = "draft" if params.draft else "proposed"
    if params.draft:
        mail.charge(ctx)
    else:
        _offer(ctx, package, plan, receiver, str(params.reason))
    handoffs.insert(
        ctx.db,
        package,
        sender=sender,
        receiver=receiver,
        reason=str(params.reason),
        status=status,
        draft_digest=digest,
        team=plan.team,
        previous=None if params.draft or plan.active is None else plan.active.handoff_id,
        team_gate=plan.gated,
        stamp=ctx.stamp,
    )
    case = case_of(ctx, package["handoff_id"])
    record(ctx, case.handoff, "draft", "draft", "sender", before=None)
    if not params.draft:
        _start_offer_timer(ctx, case.handoff)
        record(ctx, case.handoff, "propose", "proposed", "sender", before="draft")
    return answer(ctx, case_of(ctx, case.handoff.handoff_id))


def propose(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Send a draft, with a new plan, as the task may have changed since."""
    case = visible(ctx, params)
    handoff = case.handoff
    after, role = decide(ctx, case, "propose")
    plan = _plan(ctx, handoff.task_id, handoff.from_agent, handoff.to_agent, handoff.team)
    package = case.package
    package["provenance"]["handoff_chain"] = list(plan.chain)
    package["verification"]["package_hash"] = domain.package_hash(package)
    _offer(ctx, package, plan, handoff.to_agent, handoff.reason)
    previous = plan.active.handoff_id if plan.active else None
    handoffs.put_package(ctx.db, package, previous, team_gate=plan.gated)
    _start_offer_timer(ctx, handoff)
    return answer(ctx, write(ctx, case, "propose", after, role))


def _repeated(ctx: Context, known: Handoff, sender: str, digest: str) -> dict[str, Any]:
    """The current state, for a retry of the same offer. Raises Conflict for a different one."""
    if known.draft_digest != digest or known.from_agent != sender:
        raise Conflict(
            f"The handoff_id {known.handoff_id} is taken by another handoff",
            reason="handoff_id_taken",
        )
    return answer(ctx, case_of(ctx, known.handoff_id))


def _offer(ctx: Context, package: dict[str, Any], plan: _Plan, receiver: str, reason: str) -> None:
    """Send the offer, and close the handoff that it replaces."""
    if package["policy"]["requires_human_approval"]:
        check_waiting(handoffs.unapproved_count(ctx.db, identity(ctx.caller.agent_id)), "handoffs")
    text = f"{package['task']['title']}: {reason}"
    tell(ctx, package, plan.team, "handoff.initiate", text, to=(receiver,), charged=True)
    _hand_on(ctx, plan.active)


def _start_offer_timer(ctx: Context, handoff: Handoff) -> None:
    """Start the timer within which the offer must be accepted."""
    due = domain.due(ctx.stamp, ctx.node.handoffs.offer_seconds)
    handoffs.put_due(ctx.db, handoff.handoff_id, due)


def _plan(ctx: Context, task_id: str, sender: str, receiver: str, team: str | None) -> _Plan:
    """Raises Conflict (`ownership_conflict`, `handoff_cycle`, `task_elsewhere`, `other_team`,
    `team_closed`), Forbidden (`role_authority`, `capability_mismatch`), InvalidInput and
    NotFound."""
    if receiver == EVERYONE:
        raise InvalidInput("to: must name one agent, not everyone", path="to")
    if same_agent(sender, receiver):
        raise InvalidInput("to: sender and receiver must differ", path="to")
    task = standing_task(ctx, task_id)
    if task is None:
        _check_not_elsewhere(ctx, task_id, sender)
    active = handoffs.active(ctx.db, task_id)
    if not _has_part(ctx, task, active, sender):
        asked = sorted(ctx.node.acp.coordinators)
        coordinators = ", ".join([*asked, "the operator or a human of this node"])
        raise Conflict(
            "package.task.task_id: is already used by other agents on this node; choose another "
            f"id, or ask {coordinators}, who may end an offer that stays unanswered",
            reason="ownership_conflict",
            path="package.task.task_id",
            ask=asked,
        )
    if active is not None and not (active.to_agent == sender and active.status in domain.UNDER_SLA):
        raise Conflict(
            f"Handoff {active.handoff_id} of this task is {active.status}; "
            "a task has one active handoff at a time",
            reason="ownership_conflict",
            handoffId=active.handoff_id,
            status=active.status,
        )
    team, gated = _scope(ctx, task, sender, receiver, team)
    chain = domain.chain_for(task.owned if task is not None else None, sender, receiver)
    return _Plan(chain, active, team, gated)


def _check_not_elsewhere(ctx: Context, task_id: str, agent: str) -> None:
    """Raises Conflict for a task that a peer has offered to the agent by a handoff that has not
    ended, as far as this node knows."""
    nodes = {identity(peer.agent_id) for peer in peers.every(ctx.db)}
    for offered in handoffs.task_elsewhere(ctx.db, task_id, agent):
        if offered.node in nodes:
            raise Conflict(
                f"package.task.task_id: node {offered.node} holds this task, so this node cannot "
                f"hand it over. Complete or reject handoff {offered.handoff_id}. If that handoff "
                "has ended, fetch it with action 'get'. For other work choose another task_id",
                reason="task_elsewhere",
                node=offered.node,
                handoffId=offered.handoff_id,
            )


def _has_part(ctx: Context, task: TaskRow | None, active: Handoff | None, agent: str) -> bool:
    """Whether the agent may hand on a task: its owners since the chain began, the members of its
    teamspace, and whoever may see its active handoff. A task that nobody has is open to all."""
    if task is None and active is None:
        return True
    if task is not None:
        if task.owned is not None and any(same_agent(agent, owner) for owner in task.owned.chain):
            return True
        if task.team is not None and authority.role_of(teams.members(ctx.db, task.team), agent):
            return True
    return active is not None and may_see(ctx, case_of(ctx, active.handoff_id))


def _scope(
    ctx: Context, task: TaskRow | None, sender: str, receiver: str, team: str | None
) -> tuple[str | None, bool]:
    """The handoff's teamspace, and whether a member of it must approve the handoff (§8.4)."""
    task_team = task.team if task is not None else None
    if None not in (team, task_team) and team != task_team:
        raise Conflict(
            f"team: the task belongs to teamspace {task_team}", reason="other_team", team=task_team
        )
    team = task_team or team
    if team is None:
        return None, False
    members = check_active(ctx, team)
    role = authority.role_of(members, sender)
    if task_team is None and role is not None:
        authority.check("create_task", role)
    if task is not None and task_team is not None and task.owned is None:
        authority.check("assign_owner", role, kind=task.kind)
    check_may_work(authority.role_of(members, receiver), task.kind if task else "execution")
    return team, role is None


def check_active(ctx: Context, team: str) -> dict[str, TeamRole]:
    """The members of an active teamspace. Raises NotFound, or Conflict when it is closed."""
    teamspace = teams.find(ctx.db, team)
    if teamspace is None:
        raise NotFound(f"There is no teamspace {team}", kind="teamspace", team=team)
    if teamspace.status != "active":
        raise Conflict(f"The teamspace {team} is closed", reason="team_closed", team=team)
    return teams.members(ctx.db, team)


def check_may_work(role: TeamRole | None, kind: TaskKind) -> None:
    """Raises Forbidden unless this role may take over such work (§8.4, Accept execution task)."""
    if role is None:
        raise Forbidden(
            "to: the receiver is not a member of the teamspace; its coordinator can add it",
            reason="capability_mismatch",
        )
    if kind in ("execution", "merge") and not authority.may("accept_task", role):
        raise Forbidden(
            f"to: a member of role {role} may not take over work of kind {kind}",
            reason="capability_mismatch",
            role=role,
        )


def _hand_on(ctx: Context, active: Handoff | None) -> HandoffCase | None:
    """Close the handoff by which the sender owns the task; the new one replaces it."""
    if active is None:
        return None
    case = case_of(ctx, active.handoff_id)
    if case.status == "accepted":
        after, role = decide(ctx, case, "activate")
        case = write(ctx, case, "activate", after, role)
    after, role = decide(ctx, case, "hand_on")
    return write(ctx, case, "hand_on", after, role, detail="The receiver hands the task over")


def _whole(handoff_id: str, given: dict[str, Any], chain: tuple[str, ...]) -> dict[str, Any]:
    """The package of §7.1: the given members and those that the node fills in."""
    package = given | {
        "protocol": "acp",
        "version": "1.0.0",
        "handoff_id": handoff_id,
        "thread_id": given.get("thread_id") or handoff_id,
        "provenance": given["provenance"] | {"handoff_chain": list(chain)},
        "verification": {"schema_version": "1.0.0"},
    }
    package["verification"]["package_hash"] = domain.package_hash(package)
    return package


def _check_hash(draft: HandoffDraft, given: dict[str, Any]) -> None:
    if draft.verification is None:
        return
    expected = domain.package_hash(given)
    if draft.verification.package_hash != expected:
        raise InvalidInput(
            "package.verification.package_hash: differs from the hash of the package as sent; "
            "leave verification out, and the node fills it in",
            reason="hash_mismatch",
            path="package.verification.package_hash",
            expected=expected,
        )
