"""Versions that were written apart: conflicts are kept (design §7)."""

from dataclasses import replace
from typing import Any

from schemas.facts import VersionFact
from server.domain import contract
from server.domain import contract_steps as steps
from server.domain.canonical import digest
from server.domain.contract import join
from server.domain.contract_steps import Party
from tests.server.domain.histories import API, CONTENTS, WEB
from tests.server.domain.story import Story, story_in


def updated(story: Story, who: Party, content: Any, stamp: int) -> VersionFact:
    parties = contract.current_of(story.facts).parties
    return steps.update(story.facts, who, content, digest(content), parties, stamp)


def test_of_two_updates_made_apart_the_later_is_current_and_the_other_a_conflict() -> None:
    story = story_in("negotiating")
    one = updated(story, API, CONTENTS[1], 50)
    other = updated(story, WEB, CONTENTS[2], 60)
    facts = join(join(story.facts, [other]), [one])
    assert contract.current_of(facts) == other
    assert contract.conflicts_of(facts) == [one]
    assert contract.has_lost(join(story.facts, [one]), facts)
    assert not contract.has_lost(facts, facts)
    assert [fact.version for fact in contract.ancestors_of(facts)] == [1]


def test_the_same_update_made_twice_is_one_and_the_earlier_author_stays() -> None:
    story = story_in("negotiating")
    one = updated(story, API, CONTENTS[1], 50)
    other = updated(story, WEB, CONTENTS[1], 60)
    facts = join(join(story.facts, [other]), [one])
    assert contract.current_of(facts) == one
    assert contract.conflicts_of(facts) == []


def test_of_one_content_for_different_parties_the_earlier_is_shown_and_the_other_a_conflict() -> (
    None
):
    """What was said of it is said of both: they are one content."""
    story = story_in("negotiating")
    one = updated(story, API, CONTENTS[1], 50)
    other = replace(updated(story, WEB, CONTENTS[1], 60), parties=("api", "ios", "web"))
    facts = join(join(story.facts, [other]), [one])
    assert contract.current_of(facts) == one
    assert contract.conflicts_of(facts) == [other]
    assert contract.has_lost(join(story.facts, [one]), facts)
    assert contract.has_lost(join(story.facts, [other]), facts)
    story.facts = facts
    assert story.then(WEB, "agree") == "agreed"
    again = replace(one, stamp=55, parties=("web", "api", "api"))
    assert join(story.facts, [again]) == story.facts, "parties are a set"


def test_a_lost_race_stays_a_conflict_after_further_versions() -> None:
    story = story_in("negotiating")
    loser = updated(story, API, CONTENTS[1], 50)
    story.facts = join(story.facts, [loser, updated(story, WEB, CONTENTS[2], 60)])
    story.then(WEB, "update", CONTENTS[0])
    assert [fact.version for fact in contract.ancestors_of(story.facts)] == [1, 2]
    assert contract.conflicts_of(story.facts) == [loser]


def test_a_version_that_skips_numbers_still_has_its_parent() -> None:
    story = Story(API, WEB)
    third = replace(updated(story, WEB, CONTENTS[1], 50), version=3)
    facts = join(story.facts, [third])
    assert [fact.version for fact in contract.ancestors_of(facts)] == [1]
    assert contract.conflicts_of(facts) == []


def test_a_version_whose_parent_is_not_known_yet_has_no_ancestors() -> None:
    story = Story(API, WEB)
    second = updated(story, WEB, CONTENTS[1], 50)
    third = replace(second, version=3, parent=digest(CONTENTS[2]))
    facts = join(story.facts, [third])
    assert contract.ancestors_of(facts) == []
    assert [fact.version for fact in contract.conflicts_of(facts)] == [1]
