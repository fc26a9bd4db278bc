"""The status that follows from a contract's facts (design §7)."""

from server.domain import contract
from server.domain.canonical import digest
from tests.server.domain.histories import (
    API,
    CONTENTS,
    IOS,
    WEB,
)
from tests.server.domain.story import Story, story_in


def test_a_proposal_is_proposed_until_another_party_agrees() -> None:
    story = Story(API, WEB)
    assert story.status == "proposed"
    assert story.then(WEB, "agree") == "agreed"


def test_a_request_stands_until_its_own_author_takes_it_back() -> None:
    story = Story(API, WEB, IOS)
    story.then(WEB, "request_change")
    assert story.then(IOS, "agree") == "negotiating"
    assert story.then(WEB, "agree") == "agreed"


def test_a_reject_is_recorded_and_back_to_proposed() -> None:
    story = story_in("negotiating")
    assert story.then(WEB, "reject") == "proposed"
    assert ("response", f"1/{digest(CONTENTS[0])}/web") in story.facts


def test_a_reject_outweighs_the_agreement_of_another() -> None:
    story = Story(API, WEB, IOS)
    story.then(WEB, "reject")
    assert story.then(IOS, "agree") == "proposed"


def test_it_is_implemented_when_every_party_is_complete() -> None:
    story = story_in("agreed")
    assert story.then(WEB, "in_progress") == "agreed"
    assert story.then(WEB, "complete") == "agreed"
    assert story.then(API, "complete") == "implemented"


def test_it_is_verified_by_a_success() -> None:
    assert story_in("implemented").then(WEB, "success") == "verified"


def test_partial_is_recorded_and_moves_nothing() -> None:
    assert story_in("implemented").then(WEB, "partial") == "implemented"
    story = story_in("verified")
    assert story.then(WEB, "partial") == "verified"
    assert sum(kind == "verification" for kind, _ in story.facts) == 2


def test_an_update_voids_agreement_and_work() -> None:
    story = story_in("verified")
    story.then(WEB, "request_change")
    assert story.then(WEB, "update") == "proposed"
    assert story.works == {}
    assert story.then(API, "agree") == "agreed"


def test_a_reopened_contract_keeps_its_work_when_its_content_stays() -> None:
    story = story_in("implemented")
    story.then(WEB, "request_change")
    assert story.then(WEB, "agree") == "implemented"


def test_a_policy_of_all_waits_for_every_other_party() -> None:
    story = Story(API, WEB, IOS, policy="all")
    assert story.then(WEB, "agree") == "proposed"
    assert story.then(IOS, "agree") == "agreed"


def test_updated_at_is_the_largest_stamp() -> None:
    story = story_in("implemented")
    assert contract.updated_at(story.facts) == story.now == 4
