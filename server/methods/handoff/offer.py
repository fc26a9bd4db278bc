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
    Transition,
    case_of,
    coordinators_of,
    decide,
    record,
    standing_task,
    write,
)
from server.methods.handoff.view import answer, may_see, visible
from server.store import handoffs, peers, teams
from server.store.handoffs import Handoff
from server.store.teams import TeamTask


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an offer amounts to: who has owned the task, which handoff it takes the place of, which
    teamspace it is in, and whether one there must approve it."""

    chain: tuple[str, ...]
    active: Handoff | None
    team: str | None
    gated: bool


def initiate(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Offer work to another agent, or with `draft` only keep the offer."""
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
        _stand(ctx, case.handoff)
        record(ctx, case.handoff, "propose", "proposed", "sender", before="draft")
    return answer(ctx, case_of(ctx, case.handoff.handoff_id))


def propose(ctx: Context, params: HandoffParams) -> dict[str, Any]:
    """Send a draft: what has changed about the task since is seen to."""
    case = visible(ctx, params)
    found = case.handoff
    after, role = decide(ctx, case, "propose")
    plan = _plan(ctx, found.task_id, found.from_agent, found.to_agent, found.team)
    package = case.package
    package["provenance"]["handoff_chain"] = list(plan.chain)
    package["verification"]["package_hash"] = domain.package_hash(package)
    _offer(ctx, package, plan, found.to_agent, found.reason)
    previous = plan.active.handoff_id if plan.active else None
    handoffs.put_package(ctx.db, package, previous, team_gate=plan.gated)
    _stand(ctx, found)
    return answer(ctx, write(ctx, case, "propose", after, role))


def _repeated(ctx: Context, known: Handoff, sender: str, digest: str) -> dict[str, Any]:
    """The same offer under the same id, sent again, is answered as it stands."""
    if known.draft_digest != digest or known.from_agent != sender:
        raise Conflict(
            f"The handoff_id {known.handoff_id} is taken by another handoff",
            reason="handoff_id_taken",
        )
    return answer(ctx, case_of(ctx, known.handoff_id))


def _offer(ctx: Context, package: dict[str, Any], plan: _Plan, receiver: str, reason: str) -> None:
    """Tell the receiver, and make room for the new handoff."""
    if package["policy"]["requires_human_approval"]:
        check_waiting(handoffs.unapproved_count(ctx.db, identity(ctx.caller.agent_id)), "handoffs")
    said = f"{package['task']['title']}: {reason}"
    tell(ctx, package, plan.team, "handoff.initiate", said, to=(receiver,), charged=True)
    _hand_on(ctx, plan.active)


def _stand(ctx: Context, found: Handoff) -> None:
    """Begin the time within which the offer is to be accepted."""
    due = domain.due(ctx.stamp, ctx.node.handoffs.offer_seconds)
    handoffs.put_due(ctx.db, found.handoff_id, due)


def _plan(ctx: Context, task_id: str, sender: str, receiver: str, team: str | None) -> _Plan:
    """Raises Conflict (`ownership_conflict`, `handoff_cycle`, `task_elsewhere`, `other_team`,
    `team_closed`), Forbidden (`role_authority`, `capability_mismatch`), InvalidInput and
    NotFound."""
    if receiver == EVERYONE:
        raise InvalidInput("to: work is handed to one agent, not to everyone", path="to")
    if same_agent(sender, receiver):
        raise InvalidInput("to: you can't hand work on to yourself", path="to")
    task = standing_task(ctx, task_id)
    if task is None:
        _check_not_elsewhere(ctx, task_id, sender)
    active = handoffs.active(ctx.db, task_id)
    if not _has_part(ctx, task, active, sender):
        asked = coordinators_of(ctx, None, {})
        raise Conflict(
            "package.task.task_id: others have a task of this id on this node; take another, or "
            f"ask {', '.join(asked)}, who may end an offer that nobody answers",
            reason="ownership_conflict",
            path="package.task.task_id",
            ask=list(asked),
        )
    if active is not None and not (active.to_agent == sender and active.status in domain.UNDER_SLA):
        raise Conflict(
            f"Handoff {active.handoff_id} of this task is {active.status}; "
            "a task has one at a time",
            reason="ownership_conflict",
            handoffId=active.handoff_id,
            status=active.status,
        )
    team, gated = _scope(ctx, task, sender, receiver, team)
    chain = domain.chain_for(task.owned if task is not None else None, sender, receiver)
    return _Plan(chain, active, team, gated)


def _check_not_elsewhere(ctx: Context, task_id: str, agent: str) -> None:
    """Raise Conflict for a task that a peer has offered to the agent, by a handoff that is not
    known to have ended."""
    nodes = {identity(one.agent_id) for one in peers.every(ctx.db)}
    for one in handoffs.task_elsewhere(ctx.db, task_id, agent):
        if one.node in nodes:
            raise Conflict(
                f"package.task.task_id: {one.node} holds this task, and sees to it that it has one "
                f"owner; from here it can't be handed on. Complete or reject {one.handoff_id}, the "
                "handoff that it came by; if that has ended, 'get' it, and this node knows. For "
                "other work take another task_id",
                reason="task_elsewhere",
                node=one.node,
                handoffId=one.handoff_id,
            )


def _has_part(ctx: Context, task: TeamTask | None, active: Handoff | None, agent: str) -> bool:
    """Whether the agent may know what becomes of a task: who has owned it since its chain began,
    its teamspace, and who sees the handoff that is under way. Nobody else could hand it on. One
    that nobody has is for everyone."""
    if task is None and active is None:
        return True
    if task is not None:
        if task.owned is not None and any(same_agent(agent, one) for one in task.owned.chain):
            return True
        if task.team is not None and authority.role_of(teams.members(ctx.db, task.team), agent):
            return True
    return active is not None and may_see(ctx, case_of(ctx, active.handoff_id))


def _scope(
    ctx: Context, task: TeamTask | None, sender: str, receiver: str, team: str | None
) -> tuple[str | None, bool]:
    """The teamspace that the handoff is in, and whether one there must approve it (§8.4)."""
    theirs = task.team if task is not None else None
    if None not in (team, theirs) and team != theirs:
        raise Conflict(f"team: the task is of teamspace {theirs}", reason="other_team", team=theirs)
    team = theirs or team
    if team is None:
        return None, False
    members = check_active(ctx, team)
    role = authority.role_of(members, sender)
    if theirs is None and role is not None:
        authority.check("create_task", role)
    if task is not None and theirs is not None and task.owned is None:
        authority.check("assign_owner", role, kind=task.kind)
    check_may_work(authority.role_of(members, receiver), task.kind if task else "execution")
    return team, role is None


def check_active(ctx: Context, team: str) -> dict[str, TeamRole]:
    """The members of a teamspace that is not closed. Raises NotFound or Conflict."""
    found = teams.find(ctx.db, team)
    if found is None:
        raise NotFound(f"There is no teamspace {team}", kind="teamspace", team=team)
    if found.status != "active":
        raise Conflict(f"The teamspace {team} is closed", reason="team_closed", team=team)
    return teams.members(ctx.db, team)


def check_may_work(role: TeamRole | None, kind: TaskKind) -> None:
    """Who takes over work that is executed must be one who may (§8.4, Accept execution task)."""
    if role is None:
        raise Forbidden(
            "to: the receiver is no member of the teamspace; its coordinator adds members",
            reason="capability_mismatch",
        )
    if kind in ("execution", "merge") and not authority.may("accept_task", role):
        raise Forbidden(
            f"to: a member of role {role} may not take over work of kind {kind}",
            reason="capability_mismatch",
            role=role,
        )


def _hand_on(ctx: Context, active: Handoff | None) -> Transition | None:
    """Close the handoff by which the sender owns the task, for the next one takes its place."""
    if active is None:
        return None
    case = case_of(ctx, active.handoff_id)
    if case.status == "accepted":
        after, role = decide(ctx, case, "activate")
        case = write(ctx, case, "activate", after, role)
    after, role = decide(ctx, case, "hand_on")
    return write(ctx, case, "hand_on", after, role, detail="The receiver hands the task on")


def _whole(handoff_id: str, given: dict[str, Any], chain: tuple[str, ...]) -> dict[str, Any]:
    """The package of §7.1: what was given, with what the node fills in."""
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
            "package.verification.package_hash: not that of the package as it was sent; "
            "leave verification out, and the node fills it in",
            reason="hash_mismatch",
            path="package.verification.package_hash",
            expected=expected,
        )
