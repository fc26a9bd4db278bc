"""How far each party of a contract is, told by the facts of contracts."""

from typing import Any, get_args

import pytest
from hypothesis import given

from schemas.facts import ImplementationFact, ResponseFact, RoundFact, VerificationFact
from schemas.matrix import AwaitedKind
from server.domain.attention.contracts import openings
from server.domain.contract import Facts, current_of, status_of, versions_of
from server.domain.matrix import (
    ContractLine,
    DueStep,
    PartyCell,
    PartyStep,
    cells,
    totals,
)
from tests.server.domain.histories import API, IOS, WEB, histories
from tests.server.domain.story import Story, story_in


def line_of(facts: Facts, contract_id: str = "c") -> ContractLine:
    current = current_of(facts)
    return ContractLine(
        contract_id,
        "api_endpoint",
        "login",
        current.version,
        status_of(facts),
        current.digest,
        current.stamp,
        current.repo_id,
        (versions_of(facts)[0] if current.version > 1 else current).repo_id,
        current.parties,
        current.roles,
        current.verification,
    )


def steps_of(facts: Facts) -> list[PartyStep]:
    made = []
    for fact in facts.values():
        at = (fact.version, fact.digest)
        if isinstance(fact, ResponseFact):
            made.append(PartyStep("response", *at, fact.repo_id, 0, fact.action, fact.stamp))
        elif isinstance(fact, RoundFact):
            made.append(PartyStep("round", *at, "", fact.number, "", fact.stamp))
        elif isinstance(fact, ImplementationFact):
            work = (fact.repo_id, fact.round, fact.status, fact.stamp)
            made.append(PartyStep("implementation", *at, *work))
        elif isinstance(fact, VerificationFact):
            about = (fact.repo_id, fact.round, fact.result, fact.stamp)
            made.append(PartyStep("verification", *at, *about))
    return made


def awaited_of(facts: Facts) -> dict[str, DueStep]:
    kinds: Any = get_args(AwaitedKind)
    return {
        opening.repo_id: DueStep(opening.kind, opening.since)  # type: ignore[arg-type]
        for opening in openings("p", "c", facts)
        if opening.kind in kinds
    }


def row(facts: Facts) -> dict[str, PartyCell]:
    made = cells(line_of(facts), steps_of(facts), awaited_of(facts))
    return {cell.repo_id: cell for cell in made}


def states(facts: Facts) -> dict[str, str]:
    return {repo_id: cell.state for repo_id, cell in row(facts).items()}


def test_an_author_agrees_and_the_others_are_awaited() -> None:
    shown = row(Story(API, WEB).facts)
    assert shown["api"] == PartyCell("api", "agreed", 1, 1)
    assert shown["web"] == PartyCell("web", "awaited", 1, 1, awaited="respond")


def test_who_objects_and_who_must_revise() -> None:
    story = Story(API, WEB)
    story.then(WEB, "request_change")
    assert row(story.facts)["web"] == PartyCell("web", "objected", 1, 2)
    assert row(story.facts)["api"] == PartyCell("api", "awaited", 1, 2, awaited="revise")


def test_an_agreed_contract_is_built_by_each_party() -> None:
    story = story_in("agreed")
    assert row(story.facts)["web"] == PartyCell("web", "agreed", 1, 2, awaited="implement")
    story.then(WEB, "in_progress")
    assert states(story.facts) == {"api": "agreed", "web": "building"}
    story.then(WEB, "complete")
    assert row(story.facts)["web"] == PartyCell("web", "built", 1, 4)
    story.then(API, "complete")
    assert row(story.facts)["api"] == PartyCell("api", "built", 1, 5, awaited="verify")


def test_a_partial_verification_proves_nothing() -> None:
    story = story_in("implemented")
    story.then(WEB, "partial")
    assert states(story.facts) == {"api": "built", "web": "built"}


def test_a_verified_contract_says_by_whom() -> None:
    story = story_in("verified")
    assert row(story.facts)["api"] == PartyCell("api", "verified", 1, 5, by="web")


def test_a_failure_breaks_all_parties_until_they_build_again() -> None:
    story = story_in("implemented")
    story.then(WEB, "failure")
    assert row(story.facts)["api"] == PartyCell("api", "broken", 1, 5, by="web", awaited="repair")
    story.then(API, "in_progress")
    story.then(WEB, "complete")
    assert states(story.facts) == {"api": "building", "web": "built"}
    story.then(API, "complete")
    assert states(story.facts) == {"api": "built", "web": "built"}


def test_a_new_version_makes_what_was_built_stale() -> None:
    story = story_in("verified")
    story.then(WEB, "request_change")
    assert states(story.facts) == {"api": "awaited", "web": "objected"}
    story.then(API, "update")
    assert row(story.facts)["web"] == PartyCell("web", "stale", 1, 5, awaited="respond")
    assert row(story.facts)["api"] == PartyCell("api", "stale", 1, 4)
    story.then(WEB, "agree")
    assert row(story.facts)["api"] == PartyCell("api", "stale", 1, 4, awaited="implement")
    story.then(API, "complete")
    assert states(story.facts) == {"api": "built", "web": "stale"}


def test_work_of_a_lost_version_of_the_same_number_is_stale() -> None:
    story = story_in("agreed")
    other = PartyStep("implementation", 1, "0" * 64, "web", 1, "complete", 3)
    [_, web] = cells(line_of(story.facts), [*steps_of(story.facts), other], {})
    assert (web.state, web.version) == ("stale", 1)


@pytest.mark.parametrize("status", ["proposed", "negotiating", "agreed", "implemented", "verified"])
def test_totals_count_all_cells(status: Any) -> None:
    done, open_ = story_in("verified").facts, story_in(status).facts
    lines = [line_of(done, "done"), line_of(open_, "open")]
    counted = totals(lines, {"open": awaited_of(open_)}, ["api", "idle"])
    verified = 2 if status == "verified" else 1
    assert (counted.contracts.all, counted.contracts.verified) == (2, verified)
    assert (counted.cells.all, counted.cells.verified) == (4, 2 * verified)
    assert list(counted.repos) == ["api", "idle", "web"]
    assert counted.repos["idle"].all == 0
    assert counted.is_complete is (status == "verified")
    waits = sum(count.awaited.total() for count in counted.repos.values())
    assert waits == counted.cells.awaited.total() == len(awaited_of(open_))


def test_a_project_without_contracts_is_not_complete() -> None:
    assert not totals([], {}, ["api"]).is_complete


@given(histories(1))
def test_cells_follow_from_the_status_and_what_is_awaited(held: list[Facts]) -> None:
    [facts] = held
    shown, awaited, status = row(facts), awaited_of(facts), status_of(facts)
    assert set(shown) == set(current_of(facts).parties) == {API.repo_id, WEB.repo_id, IOS.repo_id}
    for repo_id, cell in shown.items():
        assert cell.awaited == (awaited[repo_id].kind if repo_id in awaited else None)
        assert (cell.state == "verified") == (status == "verified")
        assert (cell.state == "stale") <= (cell.version <= current_of(facts).version)
        if cell.state in ("built", "verified"):
            assert cell.awaited in (None, "verify")
        elif status not in ("proposed", "negotiating"):
            assert cell.awaited in ("implement", "repair")
    if status == "implemented":
        assert {cell.state for cell in shown.values()} == {"built"}
    assert row(dict(reversed([*facts.items()]))) == shown, "in whatever order they came"
