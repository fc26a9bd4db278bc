"""Which facts of a contract a foreign peer may write: it sends states, not steps (design §8)."""

from collections.abc import Iterable

from schemas.facts import Fact, ResponseFact, RoundFact, VerificationFact, VersionFact
from server.domain.contract import Facts, current_of, facts_about, is_open_to_all, join, status_of
from server.domain.contract_steps import ALLOWED, after


def news(facts: Facts, more: Iterable[Fact]) -> list[Fact]:
    """The unknown facts among those that a peer's state implies. An earlier version is known by its
    content, whoever its author and parties are."""
    known = {fact.place for fact in facts.values() if isinstance(fact, VersionFact)}
    return [fact for fact in more if not isinstance(fact, VersionFact) or fact.place not in known]


def admissible(facts: Facts, more: Iterable[Fact]) -> list[Fact]:
    """The facts, in order, that their repo may write.

    A foreign peer sends states rather than steps, so its steps can't all be checked against
    `ALLOWED`. But only a party writes versions, rejects, agrees, implements and verifies, and only
    an implemented contract is verified.
    """
    admitted: list[Fact] = []
    for new in more:
        fact = new if isinstance(new, VersionFact) else after(facts, new)
        if _may_write(facts, fact):
            admitted.append(fact)
            facts = join(facts, [fact])
    return admitted


def _may_write(facts: Facts, fact: Fact) -> bool:
    current = current_of(facts)
    if isinstance(fact, RoundFact):
        return any(
            (verification.result, verification.round) == ("failure", fact.number - 1)
            for verification in facts_about(facts, current, VerificationFact)
        )
    if isinstance(fact, VersionFact):
        return fact.repo_id in current.parties and set(fact.parties) >= set(current.parties)
    if isinstance(fact, ResponseFact) and is_open_to_all(facts, current, fact.action, fact.repo_id):
        return True
    if fact.repo_id not in current.parties:
        return False
    if isinstance(fact, VerificationFact):
        return status_of(facts) in ALLOWED["verify"]
    return True
