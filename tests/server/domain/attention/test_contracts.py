"""Who must act on a contract: the table of design-next N1."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import Fact
from server.domain.attention.contracts import openings
from server.domain.canonical import digest
from server.domain.contract import Facts, conflicts_of, join, status_of
from server.domain.contract_steps import Party, update
from tests.server.domain.attention.subjects import (
    CONTRACT,
    PROJECT,
    kinds,
    taken,
    waiting,
)
from tests.server.domain.histories import (
    API,
    IOS,
    PARTIES,
    WEB,
    fact_sets,
    histories,
    play,
    propose,
    steps,
)
from tests.server.domain.story import Story

FEW = settings(max_examples=60, deadline=None)


def opened(facts: Facts) -> dict[str, set[str]]:
    """The repos that each kind waits for."""
    by_kind: dict[str, set[str]] = {}
    for opening in openings(PROJECT, CONTRACT, facts):
        by_kind.setdefault(opening.kind, set()).add(opening.repo_id)
    return by_kind


def test_a_proposal_waits_for_each_other_party() -> None:
    story = Story(API, WEB, IOS)
    assert opened(story.facts) == {"respond": {"web", "ios"}}
    story.then(WEB, "agree")
    assert opened(story.facts) == {"implement": {"api", "web", "ios"}}


def test_under_all_it_waits_for_those_that_have_not_answered() -> None:
    story = Story(API, WEB, IOS, policy="all")
    story.then(WEB, "agree")
    assert opened(story.facts) == {"respond": {"ios"}}


def test_the_only_party_answers_itself() -> None:
    story = Story(API)
    assert (opened(story.facts), kinds(story.facts, API)) == ({"respond": {"api"}}, ["respond"])


def test_a_request_or_a_rejection_waits_for_the_author() -> None:
    for action in ("request_change", "reject"):
        story = Story(API, WEB, IOS)
        story.then(WEB, action)
        assert opened(story.facts) == {"respond": {"ios"}, "revise": {"api"}}
        story.then(API, "update")
        assert opened(story.facts) == {"respond": {"web", "ios"}}


def test_a_request_to_reopen_waits_for_the_author_too() -> None:
    story = Story(API, WEB)
    for who, action in ((WEB, "agree"), (API, "complete"), (WEB, "complete"), (WEB, "success")):
        story.then(who, action)
    assert opened(story.facts) == {}
    story.then(WEB, "request_change")
    assert opened(story.facts) == {"revise": {"api"}}


def test_an_author_that_is_no_party_can_revise_nothing_so_the_parties_do() -> None:
    [fact] = propose(API, WEB).values()
    facts = join({}, [_of_web_alone(fact)])
    assert opened(facts) == {"respond": {"web"}}
    [asked] = [*taken(facts, WEB, waiting(facts, WEB)[0].next[0])][1:2]
    assert opened(asked) == {"revise": {"web"}}


def _of_web_alone(fact: Any) -> Fact:
    changed: Fact = replace(fact, parties=("web",))
    return changed


def test_it_is_implemented_repaired_and_verified_by_each_party() -> None:
    story = Story(API, WEB)
    story.then(WEB, "agree")
    story.then(API, "in_progress")
    assert opened(story.facts) == {"implement": {"api", "web"}}
    story.then(API, "complete")
    assert opened(story.facts) == {"implement": {"web"}}
    story.then(WEB, "complete")
    assert opened(story.facts) == {"verify": {"api", "web"}}
    story.then(WEB, "partial")
    assert opened(story.facts) == {"verify": {"api", "web"}}, "partial is recorded only"
    story.then(WEB, "failure")
    assert opened(story.facts) == {"repair": {"api", "web"}}
    story.then(API, "complete")
    story.then(WEB, "complete")
    story.then(WEB, "success")
    assert opened(story.facts) == {}


def test_an_id_changes_with_what_must_be_done() -> None:
    story = Story(API, WEB)
    ids = [waiting(story.facts, WEB)[0].id]
    story.then(WEB, "request_change")
    ids.append(waiting(story.facts, API)[0].id)
    story.then(WEB, "reject")
    ids.append(waiting(story.facts, API)[0].id)
    story.then(API, "update")
    ids.append(waiting(story.facts, WEB)[0].id)
    assert len(set(ids)) == 4


def lost_race() -> Facts:
    """Web's second version has lost to that of the api."""
    first = propose(API, WEB)
    api, web = (join(first, [*_updated(first, who, stamp)]) for who, stamp in ((API, 9), (WEB, 8)))
    return join(api, web.values())


def _updated(facts: Facts, who: Party, stamp: int) -> list[Fact]:
    content = {"by": who.repo_id}
    return [update(facts, who, content, digest(content), ("api", "web"), stamp)]


def test_a_lost_version_waits_for_its_author_until_it_moves_on() -> None:
    facts = lost_race()
    assert len(conflicts_of(facts)) == 1
    assert opened(facts) == {"conflict": {"web"}, "respond": {"web"}}
    for step in next(item for item in waiting(facts, WEB) if item.kind == "conflict").next:
        for after in taken(facts, WEB, step):
            assert "conflict" not in opened(after)


def check_each_step_closes_its_item(facts: Facts) -> None:
    for who in PARTIES.values():
        for item in waiting(facts, who):
            assert item.next
            for step in item.next:
                for after in taken(facts, who, step):
                    left = {other.id for other in waiting(after, who)}
                    assert item.id not in left, (item.kind, step)


@FEW
@given(histories())
def test_each_step_is_legal_and_closes_its_item(replicas: list[Facts]) -> None:
    """Nothing is open that its step can't close."""
    merged = join({}, [fact for facts in replicas for fact in facts.values()])
    for facts in (*replicas, merged):
        check_each_step_closes_its_item(facts)


@FEW
@given(fact_sets())
def test_any_facts_have_steps_that_close(facts: list[Fact]) -> None:
    check_each_step_closes_its_item(join({}, facts))


@FEW
@given(st.data())
def test_the_same_facts_in_any_order_wait_for_the_same(data: st.DataObject) -> None:
    facts = data.draw(fact_sets())
    shuffled = data.draw(st.permutations(facts))
    for who in PARTIES.values():
        assert waiting(join({}, facts), who) == waiting(join({}, shuffled), who)


@FEW
@given(st.lists(steps(1), max_size=30))
def test_something_waits_for_somebody_until_it_is_verified(played: list[Any]) -> None:
    [facts] = play(propose(API, WEB, IOS), played, 1)
    assert bool(opened(facts)) == (status_of(facts) != "verified")


@FEW
@given(histories())
def test_an_agent_with_two_repos_gets_only_what_it_can_do(replicas: list[Facts]) -> None:
    """It may not agree to its own version with its other repo."""
    web = Party("web", API.agent_id)
    for replica in replicas:
        facts: Facts = {
            at: replace(fact, agent_id=API.agent_id)  # type: ignore[arg-type]
            if getattr(fact, "repo_id", "") == "web"
            else fact
            for at, fact in replica.items()
        }
        for item in waiting(facts, web):
            for step in item.next:
                for after in taken(facts, web, step):
                    assert item.id not in {other.id for other in waiting(after, web)}
