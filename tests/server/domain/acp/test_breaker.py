"""The circuit breaker (acp-canonical §12.4)."""

from hypothesis import given
from hypothesis import strategies as st

from server.domain.acp.breaker import (
    CLOSED,
    SENDER,
    Breaker,
    Trip,
    after_failure,
    after_success,
    wait,
)

FAILURES, WINDOW, OPEN, OPEN_MAX = SENDER
START = 1_700_000_000_000_000


def failed(times: int, breaker: Breaker = CLOSED, now: int = START) -> Breaker:
    for _ in range(times):
        breaker = after_failure(breaker, now)
    return breaker


def test_it_opens_after_many_failures_in_a_short_time() -> None:
    almost = failed(FAILURES - 1)
    assert wait(almost, START) is None
    assert wait(after_failure(almost, START + 1), START + 1) == OPEN


def test_failures_far_apart_open_nothing() -> None:
    breaker = CLOSED
    for number in range(100):
        breaker = after_failure(breaker, START + number * WINDOW)
        assert wait(breaker, START + number * WINDOW) is None


def test_one_success_after_its_time_closes_it() -> None:
    later = START + OPEN
    assert wait(failed(FAILURES), later) is None
    assert after_success(failed(FAILURES), later) == CLOSED


def test_one_failure_after_its_time_opens_it_for_longer() -> None:
    breaker, now = failed(FAILURES), START
    for trips in range(1, 20):
        open_for = wait(breaker, now)
        assert open_for is not None
        assert open_for == min(OPEN * 2 ** (trips - 1), OPEN_MAX)
        now += open_for
        breaker = after_failure(breaker, now)


def test_a_success_in_between_forgives_nothing() -> None:
    almost = failed(FAILURES - 1)
    assert after_success(almost, START) == almost


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2 * OPEN)), max_size=80))
def test_nobody_waits_longer_than_the_most(events: list[tuple[bool, int]]) -> None:
    breaker, now = CLOSED, START
    for success, step in events:
        now += step
        breaker = (after_success if success else after_failure)(breaker, now)
        left = wait(breaker, now)
        assert left is None or 0 < left <= OPEN_MAX


def test_a_channel_has_terms_of_its_own() -> None:
    trip = Trip(failures=2, window=10, open=3, longest=5)
    breaker = after_failure(after_failure(CLOSED, START, trip), START, trip)
    assert wait(breaker, START) == 3
    assert wait(after_failure(breaker, START + 3, trip), START + 3) == 5
