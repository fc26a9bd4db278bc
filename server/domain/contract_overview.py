"""What a reader of a contract needs to know besides its content, from its facts."""

from typing import Literal, NamedTuple

from schemas.facts import ResponseFact, VerificationFact, VersionFact
from server.domain.contract import Facts, ancestors_of, current_of, facts_about


class ComparedVersion(NamedTuple):
    """The version with which a repo compares the current one: the last that it agreed to, or the
    one before."""

    version: VersionFact
    basis: Literal["agreed", "previous"]


def compared_version(facts: Facts, repo_id: str) -> ComparedVersion | None:
    """The version with which a repo compares the current one; None for a first version."""
    line = ancestors_of(facts)
    agreed = [version for version in line if has_agreed(facts, version, repo_id)]
    if agreed:
        return ComparedVersion(agreed[-1], "agreed")
    return ComparedVersion(line[-1], "previous") if line else None


def knows_current(facts: Facts, repo_id: str) -> bool:
    """Whether a repo has agreed to the current version."""
    return has_agreed(facts, current_of(facts), repo_id)


def has_agreed(facts: Facts, version: VersionFact, repo_id: str) -> bool:
    """Whether a repo agreed to a version. An author has agreed to its own."""
    return version.repo_id == repo_id or any(
        fact.repo_id == repo_id and fact.action == "agree"
        for fact in facts_about(facts, version, ResponseFact)
    )


def responses_to(facts: Facts, current: VersionFact) -> list[ResponseFact]:
    """The latest response of each repo to a version, oldest first."""
    return sorted(facts_about(facts, current, ResponseFact), key=_when)


def verifications_of(facts: Facts, current: VersionFact) -> list[VerificationFact]:
    """Every verification of a version, by round, then oldest first."""
    known = facts_about(facts, current, VerificationFact)
    return sorted(known, key=lambda fact: (fact.round, *_when(fact)))


def _when(fact: ResponseFact | VerificationFact) -> tuple[int, str]:
    return fact.stamp, fact.key
