import re
import signal
import threading

import pytest

from proof.sender import Halted
from proof.time_limit import OVER, halting_after


def endless() -> None:
    while True:
        pass


def backtracking() -> None:
    re.fullmatch("(a|a)*b", "a" * 100)


@pytest.mark.parametrize("run", [endless, backtracking])
def test_what_has_no_end_is_ended(run: object) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Halted, match=OVER), halting_after(0.01):
        run()  # type: ignore[operator]
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_what_ends_in_time_goes_on() -> None:
    with halting_after(60):
        done = True
    assert done
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_in_another_thread_nothing_is_ended() -> None:
    ran = []

    def run() -> None:
        with halting_after(0):
            ran.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ran == [1]
