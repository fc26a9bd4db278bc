"""Who may do what in a teamspace (acp-canonical §8.3, §8.4)."""

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
    """Whether a member of this role may do it; None is no member and may do nothing.

    `kind` is the task's. `guarded` says whether the handoff is of a guarded class: one whose
    policy is `restricted` or that requires human approval.
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
    """Raise Forbidden unless `may`; it names the roles that may."""
    if may(authority, role, kind=kind, guarded=guarded):
        return
    able = [one for one in ROLES if may(authority, one, kind=kind, guarded=guarded)]
    who = f"as {role}" if role else "as no member of the teamspace"
    raise Forbidden(
        f"{MATRIX[authority][0]}: you may not, {who}; this takes a role of {', '.join(able)}",
        reason="role_authority",
        authority=authority,
        role=role,
        needs=able,
    )


def role_of(members: Mapping[str, TeamRole], agent_id: str) -> TeamRole | None:
    """The agent's role, whatever its version; None when it is no member."""
    return next((role for one, role in members.items() if same_agent(one, agent_id)), None)


def coordinators(members: Mapping[str, TeamRole]) -> tuple[str, ...]:
    return tuple(sorted(one for one, role in members.items() if role == "coordinator"))


def check_still_coordinated(members: Iterable[TeamRole]) -> None:
    """Raise Conflict when nobody of these is coordinator."""
    if "coordinator" not in members:
        raise Conflict(
            "A teamspace keeps one coordinator at least: give that role to another member first",
            reason="last_coordinator",
        )


def may_reach(members: Collection[str] | None, sender: str, recipient: str) -> bool:
    """Whether what a sender has written for a teamspace may go to a recipient now: both are members
    still. All are addresses; `members` is None where there is no active teamspace."""
    return members is not None and sender in members and recipient in members


def check_audience(
    team: str, members: Collection[str] | None, sender: str, to: Collection[str]
) -> None:
    """Raise unless what has `visibility: team` stays among the members of a teamspace (§12.3).

    All are addresses; `members` is None where there is no active teamspace of that name. Raises
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
            f"team: you are no member of the teamspace {team}; choose another policy.visibility",
            reason="not_in_team",
            path="team",
        )
    if EVERYONE in to:
        raise InvalidInput(
            "to: what is for a teamspace goes to its members, each by name; '*' is everyone",
            reason="policy_violation",
            path="to",
        )
    strangers = sorted(set(to) - set(members))
    if strangers:
        raise Forbidden(
            f"to: {', '.join(strangers[:STRANGERS_SHOWN])} may not read what is for the teamspace "
            f"{team}: no members. Leave them out, or choose another policy.visibility",
            reason="not_in_team",
            path="to",
            strangers=strangers,
        )
