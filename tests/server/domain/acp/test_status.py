"""Status of messages (acp-canonical §4.1)."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from schemas.acp import ACPMessageStatus
from server.domain.acp.status import TRANSITIONS, path, whole

STATUSES: tuple[ACPMessageStatus, ...] = get_args(ACPMessageStatus)


def test_the_transitions_are_those_of_the_specification() -> None:
    allowed = {(before, after) for before, all_ in TRANSITIONS.items() for after in all_}
    assert allowed == {
        ("pending", "delivered"),
        ("delivered", "read"),
        ("pending", "failed"),
        ("pending", "expired"),
        ("delivered", "expired"),
    }
    assert set(TRANSITIONS) == set(STATUSES)


@given(st.sampled_from(STATUSES), st.sampled_from(STATUSES))
def test_a_path_goes_by_transitions_only(before: ACPMessageStatus, after: ACPMessageStatus) -> None:
    steps = path(before, after)
    if steps is None:
        assert before != after
        return
    at = before
    for step in steps:
        assert step in TRANSITIONS[at]
        at = step
    assert at == after


def test_nothing_leads_out_of_an_end() -> None:
    ends: tuple[ACPMessageStatus, ...] = ("read", "expired", "failed")
    for end in ends:
        assert [one for one in STATUSES if path(end, one)] == []


@given(st.lists(st.lists(st.sampled_from(STATUSES), max_size=4), min_size=1, max_size=5), st.data())
def test_an_envelope_goes_only_where_a_recipient_may(
    wishes: list[list[ACPMessageStatus]], data: st.DataObject
) -> None:
    """However its recipients go on, in any order, the whole goes on by allowed ways."""
    now: list[ACPMessageStatus] = ["pending"] * len(wishes)
    before = whole(now)
    moves = [place for place, wish in enumerate(wishes) for _ in wish]
    for place in data.draw(st.permutations(moves)):
        to = wishes[place].pop(0)
        if path(now[place], to):
            now[place] = to
        after = whole(now)
        assert path(before, after) is not None, (before, after)
        before = after


def test_an_envelope_waits_for_the_last_of_its_recipients() -> None:
    assert whole(["read", "pending"]) == "pending"
    assert whole(["read", "delivered", "failed"]) == "delivered"
    assert whole(["read", "expired"]) == "read"
    assert whole(["failed", "expired"]) == "expired"
    assert whole(["failed"]) == "failed"
    assert whole([]) == "pending"
