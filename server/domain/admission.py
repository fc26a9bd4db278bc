"""What a foreign peer may write of a contract: it tells of states, not of steps (design §6)."""

from collections.abc import Iterable

from schemas.facts import Fact, ResponseFact, RoundFact, VerificationFact, VersionFact
from server.domain.contract import (
    ALLOWED,
    Facts,
    after,
    current_of,
    has_asked,
    join,
    said_of,
    status_of,
)


def admissible(facts: Facts, more: Iterable[Fact]) -> list[Fact]:
    """Of facts that a peer would write, in order, those that its repo may write.

    A peer of another make tells of states, not of steps, so not every step can be held to
    `ALLOWED`; but only a party rejects, agrees, builds and verifies, only what is implemented is
    verified, and a repo that is no party writes a version only while the contract is open.
    """
    admitted: list[Fact] = []
    for said in more:
        fact = said if isinstance(said, VersionFact) else after(facts, said)
        if _may_write(facts, fact):
            admitted.append(fact)
            facts = join(facts, [fact])
    return admitted


def _may_write(facts: Facts, fact: Fact) -> bool:
    current = current_of(facts)
    if isinstance(fact, RoundFact):
        return any(
            (found.result, found.round) == ("failure", fact.number - 1)
            for found in said_of(facts, current, VerificationFact)
        )
    status = status_of(facts)
    if isinstance(fact, VersionFact):
        is_open = status in ALLOWED["update"]
        keeps = set(fact.parties) >= set(current.parties)
        return keeps and (is_open or fact.repo_id in current.parties)
    if isinstance(fact, ResponseFact) and (
        fact.action == "request_change"
        or (fact.action == "agree" and has_asked(facts, current, fact.repo_id))
    ):
        return True
    if fact.repo_id not in current.parties:
        return False
    if isinstance(fact, VerificationFact):
        return status in ALLOWED["verify"]
    return True
