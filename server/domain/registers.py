"""Registers: values of which the one with the earlier or the later stamp stays (design §5, §7)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import orjson

from server.domain.agents import identity, same_agent
from server.domain.identifiers import is_founder
from server.domain.immutable import order


class Weight(IntEnum):
    """How much a node's statement counts, the least first."""

    OTHERS = 0
    MEMBER = 1
    HOLDER = 2
    FOUNDER = 3


class RepoClaim(NamedTuple):
    """An agent's claim on a repo. `signature` is JSON of schemas.mesh.Signature, None for a claim
    of this node. Times are stamps; joining again renews a claim."""

    agent_id: str
    agent_endpoint: str | None
    claimed_at: int
    renewed_at: int
    signature: str | None = None

    def body(self) -> dict[str, str | int | None]:
        """The members that are signed."""
        return {
            "agent_id": self.agent_id,
            "agent_endpoint": self.agent_endpoint,
            "claimed_at": self.claimed_at,
            "renewed_at": self.renewed_at,
        }


class ClaimRelease(NamedTuple):
    """An agent's claims on a repo end that were made up to the stamp `released_at`. `agent_id` is
    without its version; `by` is the agent that released the repo. `signature` is as in a claim."""

    agent_id: str
    by: str
    released_at: int
    signature: str | None = None

    def body(self) -> dict[str, str | int]:
        """The members that are signed."""
        return {"agent_id": self.agent_id, "by": self.by, "released_at": self.released_at}


class StatedRelease(NamedTuple):
    """A release, and the node that signed it. Of one node the latest counts for each agent."""

    node: str
    release: ClaimRelease


def releases_that_count(
    project_id: str, claims: Iterable[RepoClaim], stated: Iterable[StatedRelease]
) -> dict[str, ClaimRelease]:
    """The release that counts for each agent: the latest, with equal stamps the larger text, of
    those whose nodes may end the agent's claim.

    It follows from the claims and the statements alone, so that nodes which hold the same of both
    agree, whatever came first: a later renewal through another node may change who may end a claim.
    """
    signers = {identity(claim.agent_id): _signer(claim.signature) for claim in _newest(claims)}
    latest: dict[str, ClaimRelease] = {}
    for node, release in stated:
        agent = release.agent_id
        if agent not in signers:
            continue
        is_own = signers[agent] is None and release.signature is None
        if not is_own and not may_release(project_id, node, signers[agent]):
            continue
        known = latest.get(agent)
        if known is None or order_of(known) < order_of(release):
            latest[agent] = release
    return latest


def _signer(signature: str | None) -> str | None:
    """The node that a kept signature names; None for this node."""
    return None if signature is None else str(orjson.loads(signature)["node"])


def is_released(claim: RepoClaim, releases: Mapping[str, ClaimRelease]) -> bool:
    """Whether a claim has ended. A renewal doesn't revive it; joining anew makes a later claim."""
    release = releases.get(identity(claim.agent_id))
    return release is not None and claim.claimed_at <= release.released_at


def may_release(project_id: str, node: str, claimed_through: str | None) -> bool:
    """Whether a node's statement that a claim has ended counts: that of the project's founder, or
    of the node that signed the claim (`claimed_through`)."""
    if claimed_through is not None and same_agent(node, claimed_through):
        return True
    return is_founder(project_id, node)


def settle(
    claims: Iterable[RepoClaim], releases: Mapping[str, ClaimRelease] | None = None
) -> list[RepoClaim]:
    """One claim for each agent; the first one, the earliest, holds the repo (design §5) unless it
    is released. Released claims come last.

    Of one agent's claims the one that was renewed last counts. Equal times are ordered by the text,
    so that every node with the same claims finds the same holder.
    """
    return sorted(
        _newest(claims),
        key=lambda claim: (is_released(claim, releases or {}), claim.claimed_at, claim.agent_id),
    )


def _newest(claims: Iterable[RepoClaim]) -> list[RepoClaim]:
    """Of each agent the claim that was renewed last."""
    latest: dict[str, RepoClaim] = {}
    for claim in claims:
        known = latest.get(identity(claim.agent_id))
        if known is None or _renewal(known) < _renewal(claim):
            latest[identity(claim.agent_id)] = claim
    return list(latest.values())


def later(
    known: tuple[Any, ...], sent: tuple[Any, ...], standing: tuple[bool, bool] = (True, True)
) -> bool:
    """Whether the sent value of a register, (stamp, value, …), replaces the known one: the later
    stamp wins.

    `standing` says of both whether their signer has standing; a value without standing never
    replaces one with it, whatever its stamp.
    """
    return (standing[1], *_comparable(sent)) > (standing[0], *_comparable(known))


def weight_on_repo(
    project_id: str, node: str | None, holder: str | None, members: Iterable[str]
) -> Weight:
    """How much a node's description of a repo counts; `node` is None for an unsigned one.

    `holder` is the node that signed the claim which holds the repo; `members` are the nodes that
    have signed a claim in the project.
    """
    if node is None:
        return Weight.OTHERS
    if is_founder(project_id, node):
        return Weight.FOUNDER
    if holder is not None and same_agent(holder, node):
        return Weight.HOLDER
    return Weight.MEMBER if any(same_agent(member, node) for member in members) else Weight.OTHERS


def gives_way(known: dict[str, Any], sent: dict[str, Any], weights: tuple[int, int]) -> bool:
    """Whether the known body gives way to the sent one, by the `weights` of both: the heavier
    stays, with equal weights the earlier `stamp`, with equal stamps the smaller text."""
    if weights[0] != weights[1]:
        return weights[1] > weights[0]
    return order(sent["stamp"], sent) < order(known["stamp"], known)


def _renewal(claim: RepoClaim) -> tuple[Any, ...]:
    return claim.renewed_at, -claim.claimed_at, claim.agent_id, claim.agent_endpoint or ""


def order_of(release: ClaimRelease) -> tuple[int, str]:
    return release.released_at, release.by


def _comparable(value: tuple[Any, ...]) -> tuple[int, str]:
    return value[0], repr(value[1:])
