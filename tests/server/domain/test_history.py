"""A contract as it was: derived from facts that are kept, consistent with the present."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.facts import Fact
from server.domain import contract
from server.domain.contract import Facts, join, round_of, status_of, updated_at
from server.domain.history import facts_until, lost_to
from tests.server.domain.histories import API, IOS, WEB, fact_sets, histories
from tests.server.domain.story import Story

TIMES = st.integers(0, 45)


def joined(facts: list[Fact]) -> Facts:
    return join({}, facts)


@given(histories())
def test_at_the_newest_stamp_it_is_the_present(replicas: list[Facts]) -> None:
    for facts in replicas:
        assert facts_until(facts, updated_at(facts)) == facts


@given(histories(), TIMES, TIMES)
def test_the_past_seen_from_a_later_past_is_the_same(
    replicas: list[Facts], first: int, second: int
) -> None:
    earlier, later = sorted((first, second))
    for facts in replicas:
        seen = facts_until(facts, earlier)
        assert facts_until(facts_until(facts, later), earlier) == seen
        assert seen.keys() <= facts_until(facts, later).keys()
        assert all(fact.stamp <= earlier for fact in seen.values())


@given(fact_sets(), st.integers(0, 7))
def test_any_facts_have_a_status_at_any_time(facts: list[Fact], at: int) -> None:
    seen = facts_until(joined(facts), at)
    assert not seen or status_of(seen)


@given(histories(replicas=1), TIMES)
def test_nothing_is_made_up(replicas: list[Facts], at: int) -> None:
    """What it shows beyond the facts of then is work that was begun, and rounds that failed."""
    [facts] = replicas
    for key, fact in facts_until(facts, at).items():
        assert facts[key] == fact or (
            facts[key].stamp > at and key[0] in ("implementation", "round")
        )


def retried() -> tuple[Story, list[str]]:
    """A contract through a failed round to verified, and its status after each step."""
    story = Story(API, WEB)
    seen = [story.status]
    steps = [
        (WEB, "agree"),
        (WEB, "in_progress"),
        (WEB, "complete"),
        (API, "complete"),
        (WEB, "failure"),
        (WEB, "complete"),
        (API, "complete"),
        (API, "success"),
    ]
    seen += [story.then(who, action) for who, action in steps]
    return story, [str(status) for status in seen]


def test_each_state_of_a_contract_is_found_again() -> None:
    story, seen = retried()
    assert seen[-1] == "verified"
    states = [status_of(facts_until(story.facts, at)) for at in range(1, story.now + 1)]
    assert states == seen


def test_before_its_first_version_there_is_no_contract() -> None:
    story, _ = retried()
    assert facts_until(story.facts, 0) == {}


def test_work_that_was_begun_and_completed_later_was_in_progress() -> None:
    story, _ = retried()
    [work] = contract.implementations_of(facts_until(story.facts, 3))
    assert (work.repo_id, work.status, work.completed_at) == ("web", "in_progress", None)


def test_a_round_that_a_later_one_replaced() -> None:
    story = Story(API, WEB)
    story.then(WEB, "agree")
    opened = []
    for _ in range(3):
        story.then(WEB, "complete")
        story.then(API, "complete")
        story.then(WEB, "failure")
        opened.append(story.now)
    for number, at in enumerate(opened, 1):
        for time, expected in ((at - 1, number), (at, number + 1)):
            facts = facts_until(story.facts, time)
            assert round_of(facts, contract.current_of(facts)) == expected


def test_what_may_be_lost_is_counted() -> None:
    story = Story(API, WEB, IOS)
    story.then(WEB, "request_change")
    story.then(WEB, "agree")
    assert lost_to(story.facts, 2) == 1, "the request of web is no longer kept"
    assert status_of(facts_until(story.facts, 2)) == "proposed"
    assert lost_to(story.facts, 3) == 0
    story.then(IOS, "agree")
    assert lost_to(story.facts, 3) == 1
    assert lost_to(story.facts, 0) == 0
