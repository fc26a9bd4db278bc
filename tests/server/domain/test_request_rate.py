"""The token bucket, as properties (CACP 2.0, Error Codes: -32005)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.request_rate import Bucket, allow, full

rates = st.integers(1, 10_000)
waits = st.lists(st.floats(0, 100), max_size=200)


@given(rates, st.floats(0, 1e9))
def test_a_new_caller_may_spend_a_minute_at_once_and_no_more(per_minute: int, now: float) -> None:
    bucket = full(now, per_minute)
    for _ in range(per_minute):
        bucket, wait = allow(bucket, now, per_minute)
        assert wait is None
    _, wait = allow(bucket, now, per_minute)
    assert wait == pytest.approx(60 / per_minute)


@given(rates, waits)
def test_over_time_no_more_than_the_rate_gets_through(per_minute: int, waits: list[float]) -> None:
    bucket, now, allowed = full(0.0, per_minute), 0.0, 0
    for wait in waits:
        now += wait
        bucket, refused = allow(bucket, now, per_minute)
        allowed += refused is None
        assert 0 <= bucket.left <= per_minute
    assert allowed <= per_minute + now * per_minute / 60 + 1e-6


@given(rates, st.floats(0, 1, exclude_max=True), st.floats(0, 1e6))
def test_who_waits_as_told_gets_through(per_minute: int, left: float, now: float) -> None:
    bucket, wait = allow(Bucket(left, now), now, per_minute)
    assert wait is not None
    assert wait > 0
    _, wait = allow(bucket, now + wait + 1e-6, per_minute)
    assert wait is None


@given(rates, st.floats(1, 1e6))
def test_a_clock_that_goes_back_gives_nothing(per_minute: int, back: float) -> None:
    bucket = Bucket(0.0, 2e6)
    after, wait = allow(bucket, bucket.at - back, per_minute)
    assert after == bucket
    assert wait is not None
