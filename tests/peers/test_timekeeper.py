"""A node's time, from clocks that tests set (design §7)."""

import time

from hypothesis import given
from hypothesis import strategies as st

from peers.clock import GAP, PROVING, SECOND, SETTLING, Reading, Sure
from peers.timekeeper import JUMP, JUMP_KEPT, Timekeeper

BEGIN = 1_800_000_000 * SECOND
HOUR = 3_600 * SECOND
YEAR = 400 * 24 * HOUR


class Machine:
    """A clock that can be set, and one that never jumps; `time` is the truth."""

    def __init__(self, ahead: int = 0) -> None:
        self.ahead = ahead
        self.time = BEGIN
        self.keeper = Timekeeper(lambda: self.time + self.ahead, lambda: self.time - BEGIN)

    def hear(self, peer: str, ahead: int) -> None:
        """A peer's clock, which is ahead of the truth by so much."""
        steady = self.keeper.steady()
        self.keeper.heard(peer, Reading(steady, self.time + ahead, steady))

    def judge_again(self) -> None:
        """A minute passes, and the node, which has no peer, looks at its clock."""
        self.time += JUMP_KEPT
        self.keeper.judge(())
        self.keeper.trust(self.keeper.certainty())

    def wait(self, micros: int) -> int:
        """Let time pass; the node's time then, beside the truth."""
        self.time += micros
        return self.keeper.now() - self.time


def test_alone_it_is_the_machines_clock() -> None:
    machine = Machine(ahead=HOUR)
    assert machine.wait(SECOND) == HOUR
    assert not machine.keeper.is_settled, "nobody has told a time yet"


def test_a_majority_sets_it_and_the_machines_clock_is_told_as_it_is() -> None:
    machine = Machine(ahead=HOUR)
    machine.hear("a", 0)
    assert machine.wait(0) == HOUR
    assert not machine.keeper.is_settled
    machine.hear("b", 0)
    assert abs(machine.wait(0)) <= SECOND
    assert machine.keeper.is_settled
    assert machine.keeper.own() == machine.time + HOUR


def test_of_two_both_keep_their_clock_and_go_on_after_a_while() -> None:
    machine = Machine()
    machine.hear("a", HOUR)
    assert machine.wait(0) == 0
    assert not machine.keeper.is_settled
    machine.wait(SETTLING)
    assert machine.keeper.is_settled
    assert machine.keeper.verdict.is_disputed


def test_who_never_answers_is_not_waited_for_longer_than_a_while() -> None:
    machine = Machine()
    machine.keeper.begin()
    assert not machine.keeper.is_settled
    machine.wait(SETTLING)
    assert machine.keeper.is_settled


@given(st.sampled_from([HOUR, -HOUR, YEAR, -YEAR]))
def test_a_jump_of_eight_seconds_moves_no_stamp(jump: int) -> None:
    machine = Machine()
    assert machine.wait(SECOND) == 0
    machine.ahead = jump
    assert machine.wait(SECOND) == 0
    assert machine.keeper.has_jumped
    machine.ahead = 0
    assert machine.wait(8 * SECOND) == 0
    assert not machine.keeper.has_jumped


def test_a_clock_that_was_set_is_followed_once_it_stands_by_it() -> None:
    machine = Machine(ahead=HOUR)
    machine.wait(SECOND)
    machine.ahead = 0
    assert machine.wait(0) == HOUR
    assert machine.wait(JUMP_KEPT) == HOUR
    machine.keeper.judge(())
    assert machine.wait(0) == 0
    assert not machine.keeper.has_jumped


def test_a_clock_that_is_set_anew_has_its_own_minute() -> None:
    machine = Machine()
    machine.ahead = HOUR
    machine.wait(JUMP_KEPT - SECOND)
    machine.ahead = 6 * HOUR
    for _ in range(30):
        assert machine.wait(2 * SECOND - 100_000) == 0
        machine.keeper.judge(())
    machine.wait(5 * SECOND)
    machine.keeper.judge(())
    assert machine.wait(0) == 6 * HOUR


def test_peers_hold_the_time_over_a_jump_for_as_long_as_it_lasts() -> None:
    machine = Machine()
    for peer in ("a", "b"):
        machine.hear(peer, 0)
    machine.ahead = YEAR
    for _ in range(5):
        assert abs(machine.wait(JUMP_KEPT)) <= SECOND
        machine.keeper.judge(("a", "b"))
    assert machine.keeper.verdict.is_off


def test_a_clock_that_is_drawn_to_the_time_is_followed() -> None:
    machine = Machine()
    for _ in range(10):
        machine.ahead += JUMP // 2
        assert machine.wait(SECOND) == machine.ahead


def test_a_correction_ends_when_the_clock_is_set_right() -> None:
    machine = Machine(ahead=HOUR)
    for peer in ("a", "b"):
        machine.hear(peer, 0)
    machine.ahead = 0
    assert abs(machine.wait(0)) <= SECOND
    machine.wait(JUMP_KEPT)
    machine.keeper.judge(("a", "b"))
    assert not machine.keeper.verdict.is_off
    assert machine.wait(0) == 0


def test_a_peer_that_is_removed_has_no_say() -> None:
    machine = Machine()
    for peer in ("a", "b"):
        machine.hear(peer, HOUR)
    assert machine.keeper.verdict.is_off
    machine.keeper.judge(("a",))
    assert (machine.keeper.verdict.correction, machine.wait(0)) == (0, 0)
    assert machine.keeper.ahead("b") is None


def test_how_far_each_peer_is_ahead_of_the_time() -> None:
    machine = Machine(ahead=HOUR)
    for peer in ("a", "b"):
        machine.hear(peer, 0)
    found = machine.keeper.ahead("a")
    assert found is not None
    assert abs(found) <= SECOND
    assert machine.keeper.ahead("unknown") is None


def test_the_machines_own_clocks_are_the_default() -> None:
    keeper = Timekeeper()
    before = time.time_ns() // 1000
    assert before <= keeper.now() <= time.time_ns() // 1000 + JUMP


DAY = 24 * HOUR
JUMPS = st.integers(-12, 12).map(lambda power: (1 if power > 0 else -1) * 7 ** abs(power) * SECOND)
"""From seconds to centuries, in both directions."""


@given(st.lists(st.tuples(JUMPS, st.integers(1, 50)), max_size=8))
def test_however_a_clock_jumps_what_is_sure_is_never_far_ahead_of_the_truth(
    jumps: list[tuple[int, int]],
) -> None:
    """A node alone, whose clock is set again and again, each time for minutes. No stamp follows a
    jump within a minute, and nothing ends days before it is over."""
    machine = Machine()
    machine.keeper.trust(Sure(BEGIN))
    for jumped, (jump, minutes) in enumerate(jumps, 1):
        before = machine.keeper.now() - machine.time
        machine.ahead = max(-BEGIN, jump)
        follows = abs(machine.ahead - before) < JUMP
        assert machine.wait(0) == (machine.ahead if follows else before)
        for _ in range(minutes):
            machine.judge_again()
            sure = machine.keeper.sure()
            assert sure <= machine.keeper.now()
            assert sure - machine.time <= jumped * GAP
    machine.ahead = 0
    machine.wait(0)
    for _ in range((PROVING + DAY) // JUMP_KEPT):
        machine.judge_again()
        if machine.keeper.doubt is None and not machine.keeper.has_jumped:
            break
    assert machine.keeper.sure() == machine.keeper.now() == machine.time, "it comes right"


@given(JUMPS)
def test_peers_hold_what_is_sure_too(jump: int) -> None:
    machine = Machine()
    machine.keeper.trust(Sure(BEGIN))
    for peer in ("a", "b"):
        machine.hear(peer, 0)
    machine.ahead = max(-BEGIN, jump)
    for _ in range(5):
        machine.wait(JUMP_KEPT)
        machine.keeper.judge(("a", "b"))
        assert abs(machine.keeper.sure() - machine.time) <= 2 * SECOND
    assert machine.keeper.doubt is None


def test_it_goes_by_another_clock_at_once_when_told_to() -> None:
    """Replicas go by the clock of their database server, however wrong their machine's is."""
    machine = Machine(ahead=YEAR)
    machine.keeper.go_by(lambda: machine.time + SECOND)
    assert machine.wait(HOUR) == SECOND
    assert not machine.keeper.has_jumped


def test_the_verdict_of_another_process_of_the_node_is_kept_until_it_has_its_own() -> None:
    """A replica that begins to compare clocks must not forget for a moment what the last one
    found."""
    first, next_one = Machine(ahead=HOUR), Machine(ahead=HOUR)
    for peer in "abc":
        first.hear(peer, 0)
    assert first.wait(0) == 0
    next_one.keeper.adopt(first.keeper.verdict)
    assert next_one.wait(0) == 0
    next_one.keeper.judge("abc")
    assert next_one.wait(0) == 0
    for peer in "abc":
        next_one.hear(peer, 0)
    assert next_one.wait(SETTLING) == 0


def test_an_adopted_verdict_that_nothing_bears_out_ends() -> None:
    machine = Machine()
    machine.keeper.adopt(Machine().keeper.verdict._replace(correction=HOUR))
    assert machine.wait(0) == HOUR
    machine.time += SETTLING
    machine.keeper.judge("abc")
    assert machine.wait(0) == 0
