"""The rules of a message's policy, checked before anything is written (acp-canonical §10.3,
§12.3)."""

from collections.abc import Sequence

from schemas.acp import ACPPolicy, ACPPriority
from server.domain.agents import identity
from server.domain.errors import Forbidden, InvalidInput

EVERYONE = "*"
MANY = 10
"""More named recipients than this count as a broadcast."""
WAITING_MAX = 20
"""How many messages, and how many handoffs, of one sender may wait for a human at a time, so that
no sender crowds out the others."""


def is_broadcast(to: list[str]) -> bool:
    """Whether these recipients make the message a broadcast.

    Raises InvalidInput when `*` is combined with others.
    """
    if EVERYONE in to and len(to) > 1:
        raise InvalidInput(
            "to: '*' addresses everyone and cannot be combined with other recipients",
            reason="schema_invalid",
            path="to",
        )
    return to == [EVERYONE] or len(to) > MANY


def named(to: Sequence[str]) -> list[str]:
    """The addresses of the recipients; empty for `*`."""
    return [] if to == [EVERYONE] else [identity(agent_id) for agent_id in to]


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
        raise _violation(
            "policy.visibility", "'team' needs a team; name one, or choose another visibility"
        )
    if broadcast and policy.sensitivity == "high":
        raise _violation(
            "policy.sensitivity", "a message of high sensitivity must name its recipients"
        )
    if broadcast and not coordinator and priority not in ("high", "critical"):
        raise Forbidden(
            "A broadcast needs a coordinator's authority, or priority high or critical",
            reason="broadcast_not_allowed",
        )


def is_for_team(policy: ACPPolicy, type: str) -> bool:
    """Whether only members of its teamspace may read the message. Handoffs into a teamspace are
    approved there instead (§8.4)."""
    return policy.visibility == "team" and not type.startswith("handoff.")


def is_audited(policy: ACPPolicy, priority: ACPPriority) -> bool:
    """Whether steps with the message are audited (§12.8)."""
    return priority in ("high", "critical") or policy.human_gate == "required"


def is_open_to_humans(policy: ACPPolicy, priority: ACPPriority) -> bool:
    """Whether a human's key may see the message without being a party to it (§10.2)."""
    return (
        priority == "critical"
        or policy.visibility == "human-audit"
        or policy.human_gate == "required"
    )


def check_waiting(waiting: int, kind: str) -> None:
    """Raises Forbidden (`approval_limit`) when the sender's messages or handoffs (`kind`) that
    await a human's approval have reached the limit."""
    if waiting >= WAITING_MAX:
        raise Forbidden(
            f"{waiting} {kind} of yours await approval (limit {WAITING_MAX}): wait until a human "
            "has decided on one, or until one expires",
            reason="approval_limit",
            limit=WAITING_MAX,
            waiting=waiting,
        )


def _violation(path: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{path}: {problem}", reason="policy_violation", path=path)
