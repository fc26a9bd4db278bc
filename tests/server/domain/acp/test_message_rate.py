"""Limits of senders (acp-canonical §10.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.acp.message_rate import BROADCAST, DIRECT, SECOND, Limit, allow, charge
from server.domain.errors import RateLimited


def test_the_limits_are_those_of_the_specification() -> None:
    assert Limit(10, 60 * SECOND) == DIRECT
    assert Limit(5, 3_600 * SECOND) == BROADCAST


def test_the_eleventh_in_a_minute_waits_for_the_first_to_age() -> None:
    stamps: list[int] = []
    for second in range(10):
        stamps, wait = allow(stamps, second * SECOND, DIRECT)
        assert wait is None
    stamps, wait = allow(stamps, 20 * SECOND, DIRECT)
    assert wait == 40 * SECOND
    stamps, wait = allow(stamps, 60 * SECOND, DIRECT)
    assert wait is None


def test_none_at_all() -> None:
    assert allow([], 5, Limit(0, 60)) == ([], 60)


@given(st.lists(st.integers(0, 200), max_size=60), st.integers(1, 5), st.integers(1, 50))
def test_no_window_ever_holds_more(steps: list[int], most: int, window: int) -> None:
    now, stamps, sent = 0, list[int](), list[int]()
    for step in steps:
        now += step % 20
        stamps, wait = allow(stamps, now, Limit(most, window))
        if wait is None:
            sent.append(now)
        else:
            assert 0 < wait <= window
            assert allow(stamps, now + wait, Limit(most, window))[1] is None
        assert len(stamps) <= most
        assert sum(1 for at in sent if now - window < at <= now) <= most


def test_what_was_counted_by_a_clock_that_was_ahead_ages_from_now() -> None:
    """It stays counted, and blocks the sender no longer than the window."""
    ahead = [3_600 * SECOND + n for n in range(10)]
    stamps, wait = allow(ahead, 0, DIRECT)
    assert (stamps, wait) == ([0] * 10, 60 * SECOND)


def test_a_full_window_is_a_refusal_that_says_when_to_try_again() -> None:
    limit = Limit(1, 60 * SECOND)
    assert charge([], 0, limit, "direct") == [0]
    with pytest.raises(RateLimited) as refused:
        charge([0], SECOND, limit, "direct")
    assert refused.value.data["retryAfter"] == 59
    assert refused.value.message == "1 direct messages in 60 s are allowed; try again in 59 s"
