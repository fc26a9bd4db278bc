"""When to try a peer again (design §7)."""

from hypothesis import given
from hypothesis import strategies as st

from peers.backoff import CAP_SECONDS, FIRST_SECONDS, RETRIED_PER_SECOND, delay, retry_delay

CHANCES = st.floats(0, 1)


@given(st.integers(1, 10_000), CHANCES)
def test_a_delay_is_never_nothing_and_never_over_the_cap(failures: int, chance: float) -> None:
    assert FIRST_SECONDS / 2 <= delay(failures, chance) <= CAP_SECONDS


@given(st.integers(1, 100), CHANCES, CHANCES)
def test_it_grows_whatever_chance_says(failures: int, one: float, other: float) -> None:
    assert delay(failures, one) <= delay(failures + 1, other) * 2
    assert delay(failures, 0.5) <= delay(failures + 1, 0.5)


@given(st.integers(1, 100), st.integers(0, 600), CHANCES)
def test_a_few_things_are_tried_again_as_a_peer_is(tries: int, among: int, chance: float) -> None:
    assert retry_delay(tries, among, chance) == delay(tries, chance)


@given(st.integers(30, 100), st.integers(700, 1_000_000), CHANCES)
def test_however_many_are_tried_again_they_are_few_at_a_time(
    tries: int, among: int, chance: float
) -> None:
    assert among / retry_delay(tries, among, chance) <= 2 * RETRIED_PER_SECOND * 1.000_001
