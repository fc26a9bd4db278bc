"""Registers: what has one value, of which the earlier or the later stamp stays (design §5, §6)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from server.domain.agents import identity


class Claim(NamedTuple):
    """An agent's claim on a repo. `signature` is JSON of schemas.mesh.Signature, None while it is
    our own. Times are stamps; a claim is renewed by joining again."""

    agent_id: str
    agent_endpoint: str | None
    claimed_at: int
    renewed_at: int
    signature: str | None = None

    def body(self) -> dict[str, str | int | None]:
        """What of it is signed."""
        return {
            "agent_id": self.agent_id,
            "agent_endpoint": self.agent_endpoint,
            "claimed_at": self.claimed_at,
            "renewed_at": self.renewed_at,
        }


def settle(claims: Iterable[Claim]) -> list[Claim]:
    """One claim for each agent, the one that holds first: the earliest claim (design §5).

    Of one agent's claims the last renewed counts. Equal times are settled by the text, so that
    every node that knows the same claims comes to the same holder.
    """
    latest: dict[str, Claim] = {}
    for claim in claims:
        known = latest.get(identity(claim.agent_id))
        if known is None or _renewal(known) < _renewal(claim):
            latest[identity(claim.agent_id)] = claim
    return sorted(latest.values(), key=lambda claim: (claim.claimed_at, claim.agent_id))


def later(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    """Whether their value of a register stays: (stamp, value, …), where the later stamp wins."""
    return _comparable(theirs) > _comparable(ours)


def _renewal(claim: Claim) -> tuple[Any, ...]:
    return claim.renewed_at, -claim.claimed_at, claim.agent_id, claim.agent_endpoint or ""


def _comparable(value: tuple[Any, ...]) -> tuple[int, str]:
    return value[0], repr(value[1:])
