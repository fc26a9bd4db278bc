"""Time by a majority, and the hybrid logical clock (design §7)."""

from hypothesis import assume, given
from hypothesis import strategies as st

from peers.clock import (
    AHEAD,
    FUTURE_LIMIT,
    KEPT,
    OFF,
    SECOND,
    SETTLING,
    TOLERATED,
    ClockVerdict,
    Interval,
    Reading,
    after,
    is_ahead,
    is_due,
    reckon,
    shift_of,
    tick,
)

TIMES = st.integers(0, 2**53)
HOUR = 3_600 * SECOND
LIMITS = st.integers(0, HOUR)
OFFSETS = st.integers(-2 * HOUR, 2 * HOUR)


def near(ahead: int, slack: int = TOLERATED) -> Interval:
    return Interval(ahead - slack, ahead + slack)


# --- stamps -------------------------------------------------------------------------------------


@given(TIMES, TIMES)
def test_a_stamp_is_after_the_last_unless_that_is_far_ahead(last: int, now: int) -> None:
    stamp = tick(last, now)
    assert stamp >= now
    assert stamp > last or (is_ahead(last, now) and stamp == now)


@given(TIMES, TIMES, st.integers(0, FUTURE_LIMIT - AHEAD))
def test_what_is_stamped_is_taken_at_once_by_who_is_behind_by_less_than_a_day(
    last: int, now: int, behind: int
) -> None:
    assert is_due(tick(last, now), now - behind, FUTURE_LIMIT)


@given(TIMES, st.integers(0, FUTURE_LIMIT), st.integers(0, 9 * SECOND), st.integers(1, 5))
def test_who_corrects_what_was_taken_is_taken_with_it(
    now: int, ahead: int, apart: int, times: int
) -> None:
    """By whoever tells the same time: a correction waits no longer than clocks are apart."""
    known = now + ahead
    for _ in range(times):
        known = after(now, known)
    assert is_due(known, now + times + apart, FUTURE_LIMIT)


@given(st.lists(st.integers(-10 * SECOND, 10 * SECOND), min_size=2))
def test_stamps_rise_though_the_clock_jumps_back(steps: list[int]) -> None:
    now = HOUR
    stamps = [now]
    for step in steps:
        now = max(now + step, stamps[-1] - AHEAD + 1)
        stamps.append(tick(stamps[-1], now))
    assert stamps == sorted(set(stamps))


@given(st.lists(st.integers(0, 3), min_size=1), st.integers(1, 400 * 24 * HOUR))
def test_stamps_rise_from_the_time_again_after_a_clock_was_wrong(
    steps: list[int], wrong: int
) -> None:
    """However far the last one is ahead: each is different, and others take it at once."""
    now, last = HOUR, HOUR + wrong
    made = []
    for step in steps:
        now += step
        last = tick(last, now)
        made.append(last)
        assert is_due(last, now, AHEAD)
    assert len(set(made)) == len(made)


@given(TIMES, TIMES)
def test_what_takes_the_place_of_something_is_after_it(stamp: int, known: int) -> None:
    assert after(stamp, known) > known
    assert after(stamp, known) >= stamp


@given(TIMES, TIMES, LIMITS)
def test_a_stamp_is_due_up_to_the_limit_ahead(stamp: int, now: int, limit: int) -> None:
    assert is_due(stamp, now, limit) == (stamp - now <= limit)


@given(st.lists(TIMES, min_size=1), TIMES)
def test_what_is_brought_back_keeps_its_order_and_is_not_ahead(stamps: list[int], now: int) -> None:
    newest = max(stamps)
    floor = max((stamp for stamp in stamps if stamp <= now), default=0)
    shift = shift_of(newest, floor, now)
    assert (shift is None) == (not is_ahead(newest, now))
    assume(shift is not None)
    assert shift is not None
    moved = [shift.move(stamp) for stamp in sorted(stamps)]
    assert moved == sorted(moved)
    assert max(moved) <= now
    assert all(new == old for new, old in zip(moved, sorted(stamps), strict=True) if old <= now)


# --- what a measurement tells -------------------------------------------------------------------


@given(TIMES, OFFSETS, OFFSETS, st.integers(0, SECOND), st.integers(0, SECOND), TIMES)
def test_a_reading_bounds_how_far_the_peer_is_ahead(
    sent: int, own: int, ahead: int, out: int, back: int, later: int
) -> None:
    """`own` is how far our clock is ahead of the steady one; wherever the delay was."""
    reading = Reading(sent, sent + out + own + ahead, sent + out + back)
    found = reading.at(sent + out + back + later % KEPT, own)
    assert found is not None
    assert found.low <= ahead <= found.high


@given(OFFSETS, st.integers(0, KEPT), st.integers(0, KEPT))
def test_a_reading_tells_less_as_it_ages_and_then_nothing(ahead: int, age: int, more: int) -> None:
    reading = Reading(0, ahead, 0)
    young, old = reading.at(age, 0), reading.at(age + more, 0)
    assert young is not None
    assert (old is None) == (age + more > KEPT)
    if old is not None:
        assert old.low <= young.low <= young.high <= old.high


# --- the majority -------------------------------------------------------------------------------

CLOCKS = st.lists(OFFSETS, min_size=1, max_size=9)


@given(
    st.integers(0, 3),
    st.lists(st.tuples(OFFSETS, st.integers(0, HOUR)), max_size=4),
    st.integers(-TOLERATED, TOLERATED),
)
def test_a_minority_moves_nobody_who_has_the_time(
    more: int, liars: list[tuple[int, int]], error: int
) -> None:
    """However the liars look: their intervals may be of any width, anywhere."""
    honest = len(liars) + 1 + more
    peers = {f"honest {n}": near(error) for n in range(honest - 1)}
    peers |= {f"liar {n}": near(at, width) for n, (at, width) in enumerate(liars)}
    found = reckon(peers, len(peers) + 1)
    assert found.agreed
    assert found.correction == 0


@given(
    st.integers(0, 2),
    st.lists(st.tuples(OFFSETS, st.integers(0, HOUR)), max_size=4),
    st.integers(0, 2),
    st.integers(4 * TOLERATED, 2 * HOUR),
    st.sampled_from([1, -1]),
)
def test_who_is_off_is_brought_to_the_majority_within_the_bounds_of_a_true_clock(
    more: int, liars: list[tuple[int, int]], silent: int, far: int, way: int
) -> None:
    """Those that don't answer count against it."""
    honest = len(liars) + silent + 2 + more
    clocks, truth = honest + len(liars) + silent + 1, way * far
    peers = {f"honest {n}": near(truth) for n in range(honest)}
    peers |= {f"liar {n}": near(at, width) for n, (at, width) in enumerate(liars)}
    found = reckon(peers, clocks)
    assert found.agreed
    assert abs(found.correction - truth) <= TOLERATED


@given(CLOCKS, st.integers(0, 5))
def test_without_a_majority_every_node_keeps_its_clock(clocks: list[int], silent: int) -> None:
    peers = {str(n): near(ahead) for n, ahead in enumerate(clocks)}
    found = reckon(peers, len(peers) + 1 + silent)
    if not found.agreed:
        assert found.correction == 0
    else:
        assert found.agreeing * 2 > found.clocks


@given(st.integers(2 * TOLERATED + 1, 2 * HOUR), st.sampled_from([1, -1]))
def test_of_two_nobodys_hour_is_believed(apart: int, way: int) -> None:
    found = reckon({"other": near(way * apart)}, 2)
    assert (found.agreed, found.correction) == (False, 0)
    assert found.apart == (("other", way * apart),)
    assert found.is_disputed == (apart > OFF)


def test_one_right_one_ahead_and_one_behind_have_no_majority() -> None:
    for clocks in ((HOUR, -HOUR), (-HOUR, -2 * HOUR), (HOUR, 2 * HOUR)):
        found = reckon({"a": near(clocks[0]), "b": near(clocks[1])}, 3)
        assert (found.correction, found.is_disputed, found.is_off) == (0, True, False)


def test_one_of_three_an_hour_ahead_is_corrected_and_moves_nobody() -> None:
    assert reckon({"good": near(0), "ahead": near(HOUR)}, 3).correction == 0
    ahead = reckon({"good": near(-HOUR), "right": near(-HOUR)}, 3)
    assert ahead.correction == -HOUR
    assert ahead.is_off
    assert ahead.agreeing == 2


def test_the_peers_that_are_down_count_as_well() -> None:
    """Two that agree are no majority of five."""
    found = reckon({"a": near(HOUR), "b": near(HOUR)}, 5)
    assert (found.agreed, found.correction) == (False, 0)


@given(st.lists(st.integers(-TOLERATED, TOLERATED), max_size=6))
def test_small_offsets_are_left_alone(clocks: list[int]) -> None:
    found = reckon({str(n): near(ahead) for n, ahead in enumerate(clocks)}, len(clocks) + 1)
    assert found.correction == 0
    assert not found.is_off
    assert not found.is_disputed


@given(st.lists(OFFSETS, min_size=2, max_size=7))
def test_nodes_that_see_the_same_clocks_come_to_the_same_time(clocks: list[int]) -> None:
    """All that a majority corrects, and all that are in it."""
    corrected = []
    for place, own in enumerate(clocks):
        others = {str(n): near(one - own) for n, one in enumerate(clocks) if n != place}
        found = reckon(others, len(clocks))
        if found.agreed:
            corrected.append(own + found.correction)
    assert not corrected or max(corrected) - min(corrected) <= 4 * TOLERATED


def test_when_to_go_by_what_the_clocks_say() -> None:
    agree = reckon({"a": near(0)}, 4)
    apart = reckon({"a": near(HOUR)}, 3)
    right = reckon({"a": near(HOUR), "b": near(HOUR)}, 3)
    assert agree.is_settled(0), "nobody who was heard disagrees"
    assert right.is_settled(0), "a majority tells"
    assert not apart.is_settled(SETTLING - 1), "another may come who decides it"
    assert apart.is_settled(SETTLING)
    assert not ClockVerdict().is_settled(0), "nobody was heard yet"
