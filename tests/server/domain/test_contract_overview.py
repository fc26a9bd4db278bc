"""What a reader of a contract is shown besides its content: from the facts alone."""

from dataclasses import replace

from schemas.facts import Fact, ResponseFact, VerificationFact, VersionFact
from server.domain.canonical import digest
from server.domain.contract import Facts, current_of, join
from server.domain.contract_overview import (
    compared_version,
    knows_current,
    responses_to,
    verifications_of,
)

FIRST = {"a": 1}
SECOND = {"a": 2}
THIRD = {"a": 3}


def version(number: int, content: dict[str, int], repo: str, parent: str | None = None) -> Fact:
    return VersionFact(
        version=number,
        digest=digest(content),
        content=content,
        repo_id=repo,
        agent_id=f"aid://example.com/{repo}",
        parties=("api", "web"),
        policy="any",
        parent=parent,
        stamp=number * 10,
    )


def agreement(number: int, content: dict[str, int], repo: str, stamp: int) -> ResponseFact:
    return ResponseFact(
        version=number,
        digest=digest(content),
        repo_id=repo,
        agent_id=f"aid://example.com/{repo}",
        action="agree",
        stamp=stamp,
    )


def verified(round_: int, repo: str, stamp: int) -> VerificationFact:
    return VerificationFact(
        version=1,
        digest=digest(FIRST),
        repo_id=repo,
        agent_id=f"aid://example.com/{repo}",
        round=round_,
        result="failure",
        stamp=stamp,
    )


def facts(*given: Fact) -> Facts:
    return join({}, given)


def compared(given: Facts, repo: str) -> tuple[int, str] | None:
    answer = compared_version(given, repo)
    return answer and (answer.version.version, answer.basis)


def test_the_version_with_which_the_current_one_is_compared() -> None:
    first, second = version(1, FIRST, "api"), version(2, SECOND, "api", digest(FIRST))
    third = version(3, THIRD, "web", digest(SECOND))
    assert compared(facts(first), "web") is None
    assert compared(facts(first, second, third), "web") == (2, "previous")
    assert compared(facts(first, second, third), "api") == (2, "agreed"), "it wrote that"
    agreed = agreement(1, FIRST, "web", 15)
    assert compared(facts(first, second, third, agreed), "web") == (1, "agreed")
    rejected = replace(agreed, action="reject")
    assert compared(facts(first, second, rejected), "web") == (1, "previous")


def test_whether_a_repo_has_agreed_to_the_current_version() -> None:
    first = version(1, FIRST, "api")
    assert knows_current(facts(first), "api")
    assert not knows_current(facts(first), "web")
    assert knows_current(facts(first, agreement(1, FIRST, "web", 15)), "web")


def test_responses_and_verifications_in_order() -> None:
    responses = [agreement(1, FIRST, "web", 13), agreement(1, FIRST, "app", 12)]
    results = [verified(2, "web", 11), verified(1, "web", 20), verified(1, "app", 15)]
    given = facts(version(1, FIRST, "api"), *responses, *results)
    current = current_of(given)
    assert [fact.repo_id for fact in responses_to(given, current)] == ["app", "web"]
    assert [(one.round, one.repo_id) for one in verifications_of(given, current)] == [
        (1, "app"),
        (1, "web"),
        (2, "web"),
    ]
