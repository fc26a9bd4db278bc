"""Handoffs that wait for a step of an agent, or for an approval (acp-canonical §7.2, §8.4)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.acp import ACPPriority
from schemas.attention import AttentionKind
from schemas.base import present
from schemas.handoff import HandoffStatus
from schemas.teamspace import TeamRole
from server.domain.acp import handoff as domain
from server.domain.acp import teams
from server.domain.acp.evidence import EvidenceProblem
from server.domain.agents import same_agent
from server.domain.attention.items import (
    Actor,
    ItemSubject,
    NextStep,
    WaitingItem,
    bounded,
    item_id,
    named,
)
from server.domain.attention.mail import URGENCY, approval

METHOD = "acp/handoff"
TOOL = "acp_handoff"
CHECK = "acp/handoff/check"
RUN_AGAIN = ("evidence_unchecked", "evidence_failed")
"""Reasons that a check may end."""


@dataclass(frozen=True, slots=True)
class HandoffSubject:
    """A handoff. Agents are addresses, `since` is a stamp, `members` those of its teamspace.
    `blocked`: the task is blocked, so that it can't be completed; `high_risk`: in a teamspace, only
    some roles may close it. Of a handoff that another node holds, the title and the reason are
    those of its offer, and the package is not known here."""

    handoff_id: str
    title: str
    reason: str
    objective: str | None
    next_step: str | None
    status: HandoffStatus
    from_agent: str
    to_agent: str
    priority: ACPPriority
    package_hash: str
    since: int
    due_at: str | None = None
    needs_human: bool = False
    needs_team: bool = False
    restricted: bool = False
    human_approves: bool = False
    """Its package requires a human's approval, given or not."""
    members: Mapping[str, TeamRole] | None = None
    blocked: bool = False
    high_risk: bool = False
    unproven: EvidenceProblem | None = None
    """Why its receiver can't accept it yet, where its node asks for evidence."""
    note: str | None = None
    """What its receiver should know before it accepts."""


def items(subject: HandoffSubject, who: Actor) -> Iterator[WaitingItem]:
    """The steps of the handoff that wait for the agent."""
    receives = same_agent(subject.to_agent, who.agent_id)
    sends = same_agent(subject.from_agent, who.agent_id)
    if subject.status == "proposed" and receives:
        verb = "Check the evidence of" if subject.unproven else "Accept or reject"
        yield _item(subject, verb, _accepting(subject))
    elif subject.status == "accepted" and receives:
        yield _item(subject, "Begin", (_step(subject, "activate"),))
    elif subject.status == "activated" and receives and not subject.blocked:
        done = _step(subject, "complete", summary="what you did, in a few sentences")
        yield _item(subject, "Complete", (done,))
    elif subject.status == "draft" and sends:
        discard = _step(subject, "reject", code="other", detail="why it is not sent")
        yield _item(subject, "Propose your draft of", (_step(subject, "propose"), discard))
    elif subject.status == "completed" and _closes(subject, who, sends):
        close = _step(subject, "close", summary="optional: what you checked")
        yield _item(subject, "Check and close", (close,))
    if subject.status in domain.OFFERED:
        yield from _approvals(subject, who)


def _closes(subject: HandoffSubject, who: Actor, sends: bool) -> bool:
    """Whether the agent is to close it: the sender; of high risk in a teamspace, a member that may
    (§8.4)."""
    if subject.members is None or not subject.high_risk:
        return sends
    return teams.may("close_high_risk", teams.role_of(subject.members, who.agent_id))


def _approvals(subject: HandoffSubject, who: Actor) -> Iterator[WaitingItem]:
    if subject.needs_human and who.human:
        yield _item(subject, "Approve or refuse", (approval(subject.handoff_id),), gate="human")
    if not subject.needs_team or subject.members is None:
        return
    if who.human and subject.human_approves:
        # The same call is taken for the human's approval.
        return
    guarded = subject.restricted or subject.human_approves
    role = teams.role_of(subject.members, who.agent_id)
    if teams.may("approve_handoff", role, guarded=guarded):
        yield _item(subject, "Approve", (_step(subject, "approve"),), gate="team")


def _step(subject: HandoffSubject, action: str, **fill: str) -> NextStep:
    params = {"action": action, "handoff_id": subject.handoff_id}
    if fill.get("code") == "other":
        params["code"] = fill.pop("code")
    return NextStep(TOOL, METHOD, params, fill)


def _accepting(subject: HandoffSubject) -> tuple[NextStep, ...]:
    reject = {"action": "reject", "handoff_id": subject.handoff_id}
    codes = {"code": "the reason, such as capacity_unavailable or other", "detail": "why"}
    refuse = NextStep(TOOL, METHOD, reject, codes)
    if subject.unproven is None:
        accept = {"action": "accept", "handoff_id": subject.handoff_id}
        if subject.package_hash:
            accept["package_hash"] = subject.package_hash
        return NextStep(TOOL, METHOD, accept), refuse
    if subject.unproven.reason not in RUN_AGAIN:
        return (refuse,)
    check = {"handoff_id": subject.handoff_id, "package_hash": subject.package_hash}
    runs = f"how each command ended: `cacp handoff check {subject.handoff_id}`, in a checkout, "
    return NextStep(None, CHECK, check, {"commands": f"{runs}runs and records them"}), refuse


def _item(
    subject: HandoffSubject, verb: str, steps: tuple[NextStep, ...], gate: str | None = None
) -> WaitingItem:
    kind: AttentionKind = "approve" if gate else "handoff"
    offered = subject.status in domain.OFFERED
    detail: dict[str, Any] = {
        "status": subject.status,
        "from": subject.from_agent,
        "to": subject.to_agent,
        "reason": bounded(subject.reason),
        "objective": bounded(subject.objective),
        "nextStep": bounded(subject.next_step),
        "priority": subject.priority,
        "dueAt": subject.due_at,
        "packageHash": subject.package_hash,
        "waitsFor": subject.unproven.why if subject.unproven else subject.note,
        "read": {
            "tool": TOOL,
            "method": METHOD,
            "params": {"action": "get", "handoff_id": subject.handoff_id},
        },
    }
    # Without one the id stays what earlier releases have shown.
    waits = () if subject.unproven is None else (subject.unproven.reason,)
    parties = f"from {named(subject.from_agent)}" if offered else f"to {named(subject.to_agent)}"
    return WaitingItem(
        item_id(kind, subject.handoff_id, subject.status, subject.package_hash, gate, *waits),
        kind,
        "low" if subject.status == "draft" else URGENCY[subject.priority],
        subject.since,
        ItemSubject("handoff", subject.handoff_id, subject.title),
        f"{verb} the handoff {named(subject.title)} {parties}",
        present(detail),
        steps,
    )
