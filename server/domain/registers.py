"""Registers: what has one value, of which the earlier or the later stamp stays (design §5, §7)."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from server.domain.agents import identity, same_agent
from server.domain.identifiers import is_founder
from server.domain.immutable import order


class Weight(IntEnum):
    """How much a node's word of what something is counts, the least first."""

    OTHERS = 0
    MEMBER = 1
    HOLDER = 2
    FOUNDER = 3


class RepoClaim(NamedTuple):
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


def settle(claims: Iterable[RepoClaim]) -> list[RepoClaim]:
    """One claim for each agent, the one that holds first: the earliest claim (design §5).

    Of one agent's claims the last renewed counts. Equal times are settled by the text, so that
    every node that knows the same claims comes to the same holder.
    """
    latest: dict[str, RepoClaim] = {}
    for claim in claims:
        known = latest.get(identity(claim.agent_id))
        if known is None or _renewal(known) < _renewal(claim):
            latest[identity(claim.agent_id)] = claim
    return sorted(latest.values(), key=lambda claim: (claim.claimed_at, claim.agent_id))


def later(
    ours: tuple[Any, ...], theirs: tuple[Any, ...], standing: tuple[bool, bool] = (True, True)
) -> bool:
    """Whether their value of a register stays: (stamp, value, …), where the later stamp wins.

    `standing` is whether ours and theirs were signed by a node that may say it: what such a node
    has said gives way to no other's word, whatever its stamp.
    """
    return (standing[1], *_comparable(theirs)) > (standing[0], *_comparable(ours))


def weight_on_repo(
    project_id: str, node: str | None, holder: str | None, members: Iterable[str]
) -> Weight:
    """How much a node's word of what a repo is counts; None for nobody's.

    `holder` is the node that signed the claim which holds the repo, `members` are those that have
    signed a claim in the project.
    """
    if node is None:
        return Weight.OTHERS
    if is_founder(project_id, node):
        return Weight.FOUNDER
    if holder is not None and same_agent(holder, node):
        return Weight.HOLDER
    return Weight.MEMBER if any(same_agent(one, node) for one in members) else Weight.OTHERS


def gives_way(ours: dict[str, Any], theirs: dict[str, Any], weights: tuple[int, int]) -> bool:
    """Whether their word of what something is takes the place of ours: the one of more weight
    stays, of one weight the earlier. The bodies have a `stamp`; the text settles equal ones."""
    if weights[0] != weights[1]:
        return weights[1] > weights[0]
    return order(theirs["stamp"], theirs) < order(ours["stamp"], ours)


def _renewal(claim: RepoClaim) -> tuple[Any, ...]:
    return claim.renewed_at, -claim.claimed_at, claim.agent_id, claim.agent_endpoint or ""


def _comparable(value: tuple[Any, ...]) -> tuple[int, str]:
    return value[0], repr(value[1:])
