"""What a message may be, before anything is written (acp-canonical §10.3, §12.3)."""

from collections.abc import Sequence

from schemas.acp import ACPPolicy, ACPPriority
from server.domain.agents import identity
from server.domain.errors import Forbidden, InvalidInput

EVERYONE = "*"
MANY = 10
"""More recipients than this by name are a broadcast in effect, and held to its rules."""
WAITING_MAX = 20
"""Messages of one sender, and as many handoffs, wait for a human at a time: nobody's own keep the
others' from being seen."""


def is_broadcast(to: list[str]) -> bool:
    """Whether the rules of broadcasts hold for these recipients.

    Raises InvalidInput when `*` stands beside others.
    """
    if EVERYONE in to and len(to) > 1:
        raise InvalidInput(
            "to: '*' is everyone, and stands alone", reason="schema_invalid", path="to"
        )
    return to == [EVERYONE] or len(to) > MANY


def named(to: Sequence[str]) -> list[str]:
    """The addresses of recipients; none when it is for everyone."""
    return [] if to == [EVERYONE] else [identity(one) for one in to]


def check(
    policy: ACPPolicy,
    *,
    priority: ACPPriority,
    broadcast: bool,
    team: str | None,
    coordinator: bool,
) -> None:
    """Raises InvalidInput (`policy_violation`) or Forbidden (`broadcast_not_allowed`)."""
    if policy.visibility == "team" and team is None:
        raise _violation("policy.visibility", "'team' needs a team; name one, or choose another")
    if broadcast and policy.sensitivity == "high":
        raise _violation("policy.sensitivity", "what is highly sensitive goes to named recipients")
    if broadcast and not coordinator and priority not in ("high", "critical"):
        raise Forbidden(
            "A broadcast needs a coordinator's authority, or priority high or critical",
            reason="broadcast_not_allowed",
        )


def is_for_team(policy: ACPPolicy, type: str) -> bool:
    """Whether only members of its teamspace may read a message. Who hands work into a teamspace is
    for the handoff to say, which is approved there (§8.4)."""
    return policy.visibility == "team" and not type.startswith("handoff.")


def is_audited(policy: ACPPolicy, priority: ACPPriority) -> bool:
    """Whether what is done with the message leaves audit events (§12.8)."""
    return priority in ("high", "critical") or policy.human_gate == "required"


def is_open_to_humans(policy: ACPPolicy, priority: ACPPriority) -> bool:
    """Whether a human's key may see the message without being a party to it (§10.2)."""
    return (
        priority == "critical"
        or policy.visibility == "human-audit"
        or policy.human_gate == "required"
    )


def check_waiting(waiting: int, what: str) -> None:
    """Raises Forbidden (`approval_limit`) for a sender of whom so many of `what` wait for a human
    already."""
    if waiting >= WAITING_MAX:
        raise Forbidden(
            f"{waiting} of your {what} wait for a human already, and {WAITING_MAX} may at a time: "
            "wait until a human has decided on one, or until one expires",
            reason="approval_limit",
            limit=WAITING_MAX,
            waiting=waiting,
        )


def _violation(path: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{path}: {problem}", reason="policy_violation", path=path)
