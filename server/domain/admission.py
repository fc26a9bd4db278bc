"""What a foreign peer may write of a contract: it tells of states, not of steps (design §8)."""

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


def news(facts: Facts, more: Iterable[Fact]) -> list[Fact]:
    """Of facts that a peer's state stands for, those that are not known: a version of before is
    known by its content, whoever made it and whomever it binds."""
    known = {fact.place for fact in facts.values() if isinstance(fact, VersionFact)}
    return [fact for fact in more if not isinstance(fact, VersionFact) or fact.place not in known]


def admissible(facts: Facts, more: Iterable[Fact]) -> list[Fact]:
    """Of facts that a peer would write, in order, those that its repo may write.

    A foreign peer tells of states, not of steps, so not every step can be held to
    `ALLOWED`; but only a party writes versions, rejects, agrees, builds and verifies, and only what
    is implemented is verified.
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
    if isinstance(fact, VersionFact):
        return fact.repo_id in current.parties and set(fact.parties) >= set(current.parties)
    if isinstance(fact, ResponseFact) and (
        fact.action == "request_change"
        or (fact.action == "agree" and has_asked(facts, current, fact.repo_id))
    ):
        return True
    if fact.repo_id not in current.parties:
        return False
    if isinstance(fact, VerificationFact):
        return status_of(facts) in ALLOWED["verify"]
    return True
