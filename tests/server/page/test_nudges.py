"""Nobody is nudged twice at once about the same thing."""

import pytest

from server.domain.errors import RateLimited
from server.page.nudges import NUDGE_SECONDS, REMEMBERED_MAX, Nudges, SentNudge

AT = 1_000.0


def test_a_second_nudge_waits() -> None:
    nudges = Nudges()
    nudges.note("ann", "item", SentNudge(AT, "a"))
    with pytest.raises(RateLimited, match=r"ann was nudged about this 9 min ago") as refusal:
        nudges.note("ann", "item", SentNudge(AT + NUDGE_SECONDS - 1, "b"))
    assert refusal.value.data["retryAfter"] == 2
    nudges.note("ann", "item", SentNudge(AT + NUDGE_SECONDS, "c"))


def test_another_agent_or_item_is_nudged_and_a_double_click_is_one() -> None:
    nudges = Nudges()
    nudges.note("ann", "item", SentNudge(AT, "a"))
    nudges.note("ann", "item", SentNudge(AT, "a"))
    nudges.note("ann", "other", SentNudge(AT, "b"))
    nudges.note("ben", "item", SentNudge(AT, "c"))
    with pytest.raises(RateLimited):
        nudges.note("ben", "item", SentNudge(AT, ""))


def test_a_refused_nudge_does_not_count() -> None:
    nudges = Nudges()
    nudges.note("ann", "item", SentNudge(AT, "a"))
    nudges.forget("ann", "item")
    nudges.note("ann", "item", SentNudge(AT, "b"))


def test_few_are_remembered() -> None:
    nudges = Nudges()
    for number in range(REMEMBERED_MAX + 1):
        nudges.note("ann", str(number), SentNudge(AT, ""))
    nudges.note("ann", "0", SentNudge(AT, ""))
    with pytest.raises(RateLimited):
        nudges.note("ann", "2", SentNudge(AT, ""))
