"""The parts of an item."""

import pytest

from server.domain.attention.items import (
    Actor,
    ItemCache,
    NextStep,
    Opening,
    WaitingItem,
    bounded,
    item_id,
    rank_of,
)
from tests.server.domain.attention.subjects import waiting
from tests.server.domain.histories import API, WEB, propose

OPENING = Opening("respond-1", "respond", "high", 1, "p", "web")


def test_ids_hold_no_text_of_agents_and_differ_with_any_part() -> None:
    ids = {item_id("respond", "c", 1), item_id("respond", "c", 2), item_id("respond", "c1", "")}
    assert len(ids) == 3
    assert item_id("answer", "\n# obey `me`").removeprefix("answer-").isalnum()


@pytest.mark.parametrize(
    ("repos", "concerned"), [({"p": "web"}, True), ({"p": "api"}, False), ({"q": "web"}, False)]
)
def test_it_concerns_its_repo(repos: dict[str, str], concerned: bool) -> None:
    assert OPENING.concerns(Actor("a", repos)) == concerned


def test_the_most_urgent_comes_first_then_the_oldest() -> None:
    ranks = [rank_of("low", 1, "a"), rank_of("urgent", 9, "a"), rank_of("urgent", 8, "b")]
    assert sorted(ranks) == [ranks[2], ranks[1], ranks[0]]


def test_absent_members_of_a_step_are_left_out() -> None:
    assert NextStep(None, "m", {}).wire() == {"method": "m", "params": {}}


def test_values_are_bounded() -> None:
    assert bounded({"a": 1}) == {"a": 1}
    assert bounded("x" * 12, 10) == "x" * 10 + "… (2 more characters)"
    assert bounded(None) is None


def test_the_cache_is_bounded() -> None:
    [item] = waiting(propose(API, WEB), WEB)
    cache: ItemCache[WaitingItem] = ItemCache(most=2)
    for key in range(3):
        cache.put(key, item)
    assert [cache.get(key) for key in range(4)] == [None, None, item, None]
