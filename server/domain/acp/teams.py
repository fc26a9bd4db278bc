"""The authority of roles in a teamspace (acp-canonical §8.3, §8.4)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from schemas.teamspace import TaskKind, TeamRole
from server.domain.acp.policy import EVERYONE
from server.domain.agents import same_agent
from server.domain.errors import Conflict, Forbidden, InvalidInput

STRANGERS_SHOWN = 5

Authority = Literal[
    "create_task",
    "assign_owner",
    "approve_handoff",
    "accept_task",
    "close_high_risk",
    "block_work",
    "manage_members",
    "close_team",
]
Grant = Literal["yes", "no", "merge tasks only", "guarded classes"]

ROLES: tuple[TeamRole, ...] = ("coordinator", "researcher", "executor", "reviewer", "integrator")

MATRIX: dict[Authority, tuple[str, tuple[Grant, Grant, Grant, Grant, Grant]]] = {
    "create_task": ("Create task", ("yes", "no", "no", "no", "no")),
    "assign_owner": ("Assign/reassign owner", ("yes", "no", "no", "no", "merge tasks only")),
    "approve_handoff": (
        "Approve handoff into team scope",
        ("yes", "no", "no", "guarded classes", "yes"),
    ),
    "accept_task": ("Accept execution task", ("no", "no", "yes", "no", "yes")),
    "close_high_risk": ("Mark high-risk closure complete", ("yes", "no", "no", "yes", "yes")),
    "block_work": ("Block work with reason code", ("yes", "no", "no", "yes", "yes")),
    "manage_members": ("Add/remove team members", ("yes", "no", "no", "no", "no")),
    "close_team": ("Close/archive teamspace", ("yes", "no", "no", "no", "no")),
}
"""The table of §8.4, row by row; the columns are ROLES."""


def grant(authority: Authority, role: TeamRole) -> Grant:
    """The cell of the matrix."""
    return MATRIX[authority][1][ROLES.index(role)]


def may(
    authority: Authority,
    role: TeamRole | None,
    *,
    kind: TaskKind = "execution",
    guarded: bool = False,
) -> bool:
    """Whether a member of this role has the authority; `role` is None for agents that are not
    members.

    `kind` is the task's. `guarded` says whether the handoff is in a guarded class: its policy is
    `restricted`, or it requires human approval.
    """
    if role is None:
        return False
    cell = grant(authority, role)
    if cell == "merge tasks only":
        return kind == "merge"
    if cell == "guarded classes":
        return guarded
    return cell == "yes"


def check(
    authority: Authority,
    role: TeamRole | None,
    *,
    kind: TaskKind = "execution",
    guarded: bool = False,
) -> None:
    """Raises Forbidden, naming the roles that may, unless `may`."""
    if may(authority, role, kind=kind, guarded=guarded):
        return
    able = [
        candidate for candidate in ROLES if may(authority, candidate, kind=kind, guarded=guarded)
    ]
    who = f"Your role is {role}" if role else "You are not a member of the teamspace"
    raise Forbidden(
        f"{who}; '{MATRIX[authority][0]}' requires role {' or '.join(able)}",
        reason="role_authority",
        authority=authority,
        role=role,
        needs=able,
    )


def role_of(members: Mapping[str, TeamRole], agent_id: str) -> TeamRole | None:
    """The agent's role, whatever its version; None for an agent that is not a member."""
    return next((role for member, role in members.items() if same_agent(member, agent_id)), None)


def coordinators(members: Mapping[str, TeamRole]) -> tuple[str, ...]:
    return tuple(sorted(member for member, role in members.items() if role == "coordinator"))


def check_still_coordinated(members: Iterable[TeamRole]) -> None:
    """Raises Conflict when no member has the role of coordinator."""
    if "coordinator" not in members:
        raise Conflict(
            "A teamspace needs at least one coordinator: give another member that role first",
            reason="last_coordinator",
        )


def may_reach(members: Collection[str] | None, sender: str, recipient: str) -> bool:
    """Whether a sender's message for a teamspace may go to a recipient now: both must still be
    members. All are addresses; `members` is None when there is no active teamspace."""
    return members is not None and sender in members and recipient in members


def check_audience(
    team: str, members: Collection[str] | None, sender: str, to: Collection[str]
) -> None:
    """Check that a message with `visibility: team` stays among the members of a teamspace (§12.3).

    All are addresses; `members` is None when there is no active teamspace of that name. Raises
    InvalidInput (`unknown_team`, `policy_violation`) or Forbidden (`not_in_team`).
    """
    if members is None:
        raise InvalidInput(
            f"team: there is no active teamspace {team} on this node; acp/team creates one. "
            "Or choose another policy.visibility",
            reason="unknown_team",
            path="team",
        )
    if sender not in members:
        raise Forbidden(
            f"team: you are not a member of teamspace {team}; choose another policy.visibility",
            reason="not_in_team",
            path="team",
        )
    if EVERYONE in to:
        raise InvalidInput(
            "to: a message for a teamspace must name members; '*' addresses everyone",
            reason="policy_violation",
            path="to",
        )
    strangers = sorted(set(to) - set(members))
    if strangers:
        raise Forbidden(
            f"to: {', '.join(strangers[:STRANGERS_SHOWN])} are not members of teamspace "
            f"{team} and may not read its messages. Leave them out, or choose another "
            "policy.visibility",
            reason="not_in_team",
            path="to",
            strangers=strangers,
        )
