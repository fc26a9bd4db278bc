"""Leases, waits and ends of pushes (acp-canonical §10, §12.5)."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from server.domain.acp.pushes import HOUR, SECOND, Push, Terms, failed, lease, started, taken
from server.domain.acp.routing import CHANNELS, Channel
from server.domain.acp.status import path

NOW = 1_700_000_000_000_000
TERMS = Terms()
TERMS_OF_ALL_KINDS = st.builds(
    Terms,
    lease=st.integers(1, 2 * HOUR),
    retry=st.integers(1, 2 * HOUR),
    attempts=st.integers(1, 100),
    repeats=st.integers(1, 20),
)
CHANNELS_PUSHED = st.sampled_from([one for one in CHANNELS if one != "inbox"])


def test_a_lease_lasts_twice_as_long_each_time_up_to_an_hour() -> None:
    minutes = [lease(pushes, TERMS) // SECOND // 60 for pushes in range(1, 8)]
    assert minutes == [5, 10, 20, 40, 60, 60, 60]


def test_a_longer_lease_than_an_hour_is_taken_as_it_is() -> None:
    assert lease(5, Terms(lease=2 * HOUR)) == 2 * HOUR


def test_what_is_under_way_comes_back_when_nothing_is_heard_of_it() -> None:
    push = started(Push(due=NOW), NOW, 15 * SECOND)
    assert push == Push("pending", 0, 1, NOW + 15 * SECOND)


def test_what_was_taken_is_leased_and_forgives_the_failures() -> None:
    push = taken(Push("pending", 0, 3, NOW), "channel", NOW, TERMS)
    assert push == Push("delivered", 1, 0, NOW + TERMS.lease)


def test_a_webhook_is_told_so_often_and_a_session_for_ever() -> None:
    often = Push("delivered", TERMS.repeats - 1, 0, NOW)
    assert taken(often, "channel", NOW, TERMS).due is None
    assert taken(often, "wake", NOW, TERMS).due is None
    assert taken(often, "session", NOW, TERMS).due == NOW + lease(TERMS.repeats, TERMS)


def test_failures_wait_longer_and_longer_and_are_given_up() -> None:
    push, waits = Push(due=NOW), []
    while push.due is not None:
        push = failed(started(push, NOW, SECOND), NOW, TERMS, chance=1.0)
        waits.append(push.due and (push.due - NOW) // SECOND)
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, None]
    assert push.status == "failed"


def test_what_arrived_once_never_fails() -> None:
    """§4.1: nothing leads from delivered to failed."""
    push = failed(Push("delivered", 1, TERMS.attempts, NOW), NOW, TERMS, chance=0.5)
    assert (push.status, push.due) == ("delivered", None)


@given(
    TERMS_OF_ALL_KINDS,
    CHANNELS_PUSHED,
    st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=60),
)
def test_a_push_goes_on_until_it_is_given_up_and_only_then_ends(
    terms: Terms, channel: Channel, outcomes: list[tuple[bool, float]]
) -> None:
    """It always has a time at which it comes back, later than now, unless it was told often enough
    or failed often enough in a row; and its status only goes where §4.1 lets it."""
    push, now, row = Push(due=NOW), NOW, 0
    for good, chance in outcomes:
        if push.due is None:
            break
        now = max(now, push.due)
        before = push.status
        push = started(push, now, 15 * SECOND)
        assert cast(int, push.due) > now
        row = 0 if good else row + 1
        push = taken(push, channel, now, terms) if good else failed(push, now, terms, chance)
        assert path(before, push.status) is not None
        if push.due is None:
            told_enough = good and channel != "session" and push.pushes >= terms.repeats
            assert told_enough or row >= terms.attempts
        else:
            longest = max(HOUR, terms.lease, terms.retry)
            assert now < push.due <= now + longest
    assert push.due is not None or push.status in ("delivered", "failed")


@given(TERMS_OF_ALL_KINDS, st.integers(1, 200))
def test_leases_never_get_shorter(terms: Terms, pushes: int) -> None:
    assert terms.lease <= lease(pushes, terms) <= lease(pushes + 1, terms) <= max(terms.lease, HOUR)
