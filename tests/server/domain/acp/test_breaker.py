"""The circuit breaker (acp-canonical §12.4)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.domain.acp.breaker import (
    CLOSED,
    SECOND,
    SENDER,
    CircuitBreaker,
    Trip,
    after_failure,
    after_success,
    calmed,
    check,
    wait,
)
from server.domain.errors import RateLimited

FAILURES, WINDOW, OPEN, OPEN_MAX, CALM = SENDER
START = 1_700_000_000_000_000
FORGOTTEN = SENDER.most * CALM
"""So long after its last pause a breaker remembers nothing."""

STAMPS = st.integers(0, 2 * START)
ANY = st.builds(
    CircuitBreaker,
    st.integers(0, FAILURES),
    STAMPS,
    STAMPS,
    st.integers(0, 1_000),
    st.just("hop_limit"),
)
"""What may stand on disk, whoever wrote it and by whatever clock."""


def failed(times: int, breaker: CircuitBreaker = CLOSED, now: int = START) -> CircuitBreaker:
    for _ in range(times):
        breaker = after_failure(breaker, now)
    return breaker


def tripped(trips: int) -> tuple[CircuitBreaker, int]:
    """One that opened so often with no quiet between, and the end of its pause."""
    breaker = failed(FAILURES)
    while breaker.trips < trips:
        breaker = after_failure(breaker, breaker.open_until)
    return breaker, breaker.open_until


def paused(breaker: CircuitBreaker, now: int) -> int:
    return wait(breaker, now) or 0


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


def test_a_single_failure_long_afterwards_opens_nothing() -> None:
    """It did, for twice as long each time, up to an hour."""
    breaker, now = tripped(1)
    for _ in range(100):
        now += CALM
        breaker = after_failure(breaker, now)
        assert wait(breaker, now) is None


def test_quiet_takes_back_one_doubling_after_the_other() -> None:
    breaker, now = tripped(4)
    for quiet, pause in [(0, 16), (CALM - 1, 16), (CALM, 8), (2 * CALM, 4), (3 * CALM, 2)]:
        assert wait(after_failure(breaker, now + quiet), now + quiet) == pause * OPEN
    assert after_failure(breaker, now + 4 * CALM) == CircuitBreaker(1, now + 4 * CALM)


def test_a_success_in_between_forgives_nothing() -> None:
    almost = failed(FAILURES - 1)
    assert after_success(almost, START) == almost


def test_it_knows_why() -> None:
    almost = failed(FAILURES - 1)
    assert after_failure(almost, START, reason="hop_limit").reason == "hop_limit"


@given(st.lists(st.tuples(st.booleans(), st.integers(-OPEN, 2 * CALM)), max_size=80))
def test_nobody_waits_longer_than_the_most(events: list[tuple[bool, int]]) -> None:
    """Though the clock goes back now and then."""
    breaker, now = CLOSED, START
    for success, step in events:
        now += step
        breaker = (after_success if success else after_failure)(breaker, now)
        left = wait(breaker, now)
        assert left is None or 0 < left <= OPEN_MAX


@given(ANY, STAMPS)
def test_nothing_on_disk_and_no_clock_makes_a_pause_longer(
    breaker: CircuitBreaker, now: int
) -> None:
    assert paused(breaker, now) <= OPEN_MAX
    after = after_failure(breaker, now)
    assert paused(after, now) <= OPEN_MAX
    assert after.trips <= max(SENDER.most, breaker.trips)


@given(ANY, STAMPS)
def test_after_quiet_nothing_is_left(breaker: CircuitBreaker, now: int) -> None:
    end = max(now, breaker.open_until)
    assert calmed(breaker, end + FORGOTTEN).trips == 0
    assert wait(after_failure(breaker._replace(failures=0), end + FORGOTTEN), end) is None


@example(CircuitBreaker(FAILURES - 1, START - 1, 0, 0), START, 0)
@given(ANY, STAMPS, st.integers(0, FORGOTTEN))
def test_quiet_never_lengthens_and_more_trips_never_shorten(
    breaker: CircuitBreaker, now: int, quiet: int
) -> None:
    """Monotone: in the abuse that there was, and in the quiet since."""
    now = max(now, breaker.open_until)
    assert calmed(breaker, now + quiet).trips <= calmed(breaker, now).trips
    worse = breaker._replace(trips=breaker.trips + 1)
    assert paused(after_failure(worse, now), now) >= paused(after_failure(breaker, now), now)


@given(st.integers(0, 3 * FAILURES), st.integers(0, CALM))
def test_more_failures_at_once_never_shorten_the_pause(times: int, later: int) -> None:
    fewer, more = failed(times), failed(times + 1)
    assert paused(fewer, START + later) <= paused(more, START + later)
    assert paused(after_failure(fewer, START), START) >= paused(fewer, START)


@given(ANY, STAMPS, STAMPS)
def test_looking_changes_nothing(breaker: CircuitBreaker, now: int, then: int) -> None:
    """Restart-safe: what is left depends on what is on disk and on the time, not on who asked."""
    calmed(breaker, now)
    assert calmed(CircuitBreaker(*breaker), then) == calmed(breaker, then)


def test_a_clock_that_went_back_shuts_nobody_out() -> None:
    breaker, _ = tripped(SENDER.most)
    assert wait(breaker, START - 86_400_000_000) is None
    counted = failed(FAILURES - 1, now=START)
    assert after_failure(counted, START - 86_400_000_000).failures == 1


def test_a_channel_has_terms_of_its_own() -> None:
    trip = Trip(failures=2, window=10, open=3, longest=5, calm=7)
    breaker = after_failure(after_failure(CLOSED, START, trip), START, trip)
    assert wait(breaker, START, trip) == 3
    assert wait(after_failure(breaker, START + 3, trip), START + 3, trip) == 5
    assert after_failure(breaker, START + 10, trip) == CircuitBreaker(1, START + 10)


def test_an_open_breaker_is_a_refusal_that_says_why_and_how_long() -> None:
    check(CLOSED, 0)
    with pytest.raises(RateLimited) as refused:
        check(CircuitBreaker(open_until=60 * SECOND, trips=1, reason="hop_limit"), SECOND)
    assert refused.value.data == {
        "reason": "circuit_open",
        "retryAfter": 59,
        "cause": "hop_limit",
    }
