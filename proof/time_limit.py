"""Ends what takes too long, wherever it is: the making of values has no end of its own."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from proof.sender import Halted

AGAIN = 1.0
"""Seconds until what went on is ended again."""
LEAST = 0.001
OVER = "the time was over; --time-limit gives more"


@contextmanager
def halting_after(seconds: float) -> Iterator[None]:
    """Raise `Halted` in what runs inside, `seconds` after it began.

    Signals are the main thread's: in another one nothing is ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def halt(_: int, __: FrameType | None) -> None:
        raise Halted(OVER)

    before = signal.signal(signal.SIGALRM, halt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, LEAST), AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
