"""The words for what is open."""

from typing import get_args

from schemas.attention_overview import OverviewGroup, OverviewKind, PersonReason
from server.domain.attention.items import ItemSubject
from server.domain.attention.overview import HOUR, OpenItem, judged, weighed
from server.domain.attention.overview_text import MARKS, REASONS, VERBS, mark_of


def test_every_kind_reason_and_group_has_a_word() -> None:
    assert set(VERBS) == set(get_args(OverviewKind))
    assert set(REASONS) == set(get_args(PersonReason))
    assert set(MARKS) == set(get_args(OverviewGroup))


def test_a_mark_says_why_an_item_needs_a_look() -> None:
    item = OpenItem("i", "respond", "high", 0, ItemSubject("contract", "c", "login"))

    def mark(item: OpenItem, now: int = 0) -> str:
        return mark_of(judged([weighed(item)], now, frozenset())[0])

    assert mark(item) == ""
    assert mark(item, 2 * HOUR) == "too long"
    assert mark(item._replace(reason="conflict"), 2 * HOUR) == "conflict"
