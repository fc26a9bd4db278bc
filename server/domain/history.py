"""A contract as it was at an earlier time, from the facts that are kept now (design §7).

A fact is replaced by the next one with its key, so not every earlier state is kept: what a replaced
fact leaves of itself in the one that replaced it is used, and `lost_to` counts the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from schemas.facts import (
    Fact,
    ImplementationFact,
    ReceiptFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from server.domain.contract import FactKey, Facts
from server.domain.registers import ClaimRelease, RepoClaim, is_released


def facts_until(facts: Facts, at: int) -> dict[FactKey, Fact]:
    """The facts of a contract that were there at the stamp `at`; empty before its first version.

    With `at` no smaller than every stamp these are the facts themselves. `facts_until` of an
    earlier time can be taken from that of a later one.
    """
    known: dict[FactKey, Fact] = {}
    for key, fact in facts.items():
        earlier = fact if fact.stamp <= at else _before(facts, fact, at)
        if earlier is not None:
            known[key] = earlier
    return known if any(isinstance(fact, VersionFact) for fact in known.values()) else {}


def lost_to(facts: Facts, at: int) -> int:
    """How many facts later than `at` may have replaced one of before, of which nothing is left:
    responses to versions that were there then, and receipts of a command that was run again."""
    places = {
        fact.place for fact in facts.values() if isinstance(fact, VersionFact) and fact.stamp <= at
    }
    return sum(
        isinstance(fact, ResponseFact | ReceiptFact) and fact.stamp > at and fact.place in places
        for fact in facts.values()
    )


def _before(facts: Facts, fact: Fact, at: int) -> Fact | None:
    """What was there at `at` in place of a later fact; None when nothing is known of it."""
    if isinstance(fact, ImplementationFact):
        return _work_before(fact, at)
    if isinstance(fact, RoundFact):
        return _round_before(facts, fact, at)
    return None


def _work_before(fact: ImplementationFact, at: int) -> ImplementationFact | None:
    """A repo's work keeps the times at which it was begun and completed."""
    if fact.completed_at is not None and fact.completed_at <= at:
        return replace(fact, stamp=fact.completed_at)
    if fact.started_at is None or fact.started_at > at:
        return None
    return replace(
        fact,
        status="in_progress",
        files=(),
        notes=None,
        completed_at=None,
        stamp=fact.started_at,
    )


def _round_before(facts: Facts, fact: RoundFact, at: int) -> RoundFact | None:
    """Each failed verification of a round has opened the next."""
    failures = [
        failure
        for failure in facts.values()
        if isinstance(failure, VerificationFact)
        and failure.result == "failure"
        and failure.place == fact.place
        and failure.stamp <= at
        and failure.round < fact.number
    ]
    if not failures:
        return None
    last = max(failure.round for failure in failures)
    opened = min(failure.stamp for failure in failures if failure.round == last)
    return replace(fact, number=last + 1, stamp=opened)


def holder_at(
    claims: Iterable[RepoClaim], ended: Mapping[str, ClaimRelease], at: int
) -> str | None:
    """The agent that held a repo at the stamp `at`, from all claims on it that are kept and their
    releases by agent: of the claims that stood then, the earliest."""
    released = {agent: release for agent, release in ended.items() if release.released_at <= at}
    stood = [
        claim for claim in claims if claim.claimed_at <= at and not is_released(claim, released)
    ]
    first = min(stood, key=lambda claim: (claim.claimed_at, claim.agent_id), default=None)
    return first and first.agent_id
