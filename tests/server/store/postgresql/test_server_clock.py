"""Whatever the network does, the server's time is known as well as its quickest answer allows."""

from hypothesis import given
from hypothesis import strategies as st

from peers.clock import DRIFT, SECOND, Reading
from server.store.postgresql.server_clock import ServerClock

AHEAD = 1_790_000_000 * SECOND


class Machine:
    """A machine whose steady clock reads `at`."""

    def __init__(self) -> None:
        self.at = 0
        self.clock = ServerClock(lambda: self.at)

    def ask(self, there: int, back: int, ahead: int = AHEAD) -> None:
        """Ask a server whose clock is `ahead`; the question and the answer take so long."""
        sent = self.at
        self.at += there
        told = self.at + ahead
        self.at += back
        self.clock.heard(Reading(sent, told, self.at))

    @property
    def error(self) -> int:
        return abs(self.clock.now() - (self.at + AHEAD))


TIMES = st.integers(0, 5 * SECOND)


@given(asked=st.lists(st.tuples(TIMES, TIMES, st.integers(0, 60 * SECOND)), min_size=1))
def test_the_error_is_at_most_half_of_the_quickest_answer(
    asked: list[tuple[int, int, int]],
) -> None:
    machine, best = Machine(), 10**15
    for there, back, pause in asked:
        machine.at += pause
        machine.ask(there, back)
        best = min(best + pause // DRIFT + (there + back) // DRIFT + 2, there + back)
        assert machine.error <= best // 2 + 2


def test_a_server_s_clock_that_was_set_is_followed() -> None:
    machine = Machine()
    machine.ask(100, 100)
    machine.ask(100, 100, AHEAD + 3_600 * SECOND)
    assert abs(machine.clock.now() - (machine.at + AHEAD + 3_600 * SECOND)) <= 100


def test_nothing_is_known_before_the_first_answer() -> None:
    machine = Machine()
    assert not machine.clock.is_known
    machine.ask(1, 1)
    assert machine.clock.is_known
