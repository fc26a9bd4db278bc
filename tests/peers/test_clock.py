"""Hybrid logical clock (design §6, Stamps)."""

from hypothesis import given
from hypothesis import strategies as st

from peers.clock import TOLERATED, correction, is_due, is_off, offset, tick

TIMES = st.integers(0, 2**53)


@given(TIMES, TIMES)
def test_a_stamp_is_after_the_last_and_not_before_now(last: int, now: int) -> None:
    assert tick(last, now) > last
    assert tick(last, now) >= now


@given(TIMES, TIMES)
def test_it_is_the_time_while_the_time_moves_on(last: int, now: int) -> None:
    if now > last:
        assert tick(last, now) == now
    else:
        assert tick(last, now) == last + 1


@given(st.lists(TIMES, min_size=2))
def test_stamps_rise_though_the_clock_jumps_back(clock: list[int]) -> None:
    stamps = [clock[0]]
    for now in clock[1:]:
        stamps.append(tick(stamps[-1], now))
    assert stamps == sorted(set(stamps))


HOUR = 3_600_000_000
OFFSETS = st.dictionaries(st.text(max_size=3), st.integers(-HOUR, HOUR), max_size=6)


@given(TIMES, st.integers(-HOUR, HOUR), st.integers(0, 1_000_000), st.integers(0, 1_000_000))
def test_an_offset_is_off_by_no_more_than_the_way(
    now: int, ahead: int, out: int, back: int
) -> None:
    found = offset(now, now + out + ahead, now + out + back)
    assert abs(found - ahead) <= (out + back) // 2 + 1


@given(st.integers(-HOUR, HOUR))
def test_one_false_clock_of_three_moves_nobody(false: int) -> None:
    assert correction({"good": 1_000, "false": false}) in (0, 1_000)


@given(st.lists(st.integers(-HOUR, HOUR), min_size=2, max_size=7))
def test_nodes_that_see_the_same_peers_come_to_the_same_time(clocks: list[int]) -> None:
    """Each corrected clock is the median of all, up to what is tolerated."""
    corrected = []
    for own in clocks:
        others = {str(n): one - own for n, one in enumerate(clocks)}
        others.pop(str(clocks.index(own)))
        corrected.append(own + correction(others))
    assert max(corrected) - min(corrected) <= 2 * TOLERATED + 2


@given(OFFSETS)
def test_small_offsets_are_left_alone(offsets: dict[str, int]) -> None:
    near = {name: value % TOLERATED for name, value in offsets.items()}
    assert correction(near) == 0
    assert not is_off(correction(near))


def test_an_hour_is_off() -> None:
    assert is_off(correction({"a": -HOUR, "b": -HOUR + 5}))


@given(TIMES, TIMES, st.integers(0, HOUR))
def test_a_stamp_is_due_up_to_the_limit_ahead(stamp: int, now: int, limit: int) -> None:
    assert is_due(stamp, now, limit) == (stamp - now <= limit)
