"""The time of the database server, which is the clock of all replicas.

Each look at the server bounds how far its clock is ahead of a steady one here: it was read between
the question and the answer. Bounds that meet are narrowed to what they share, as in NTP; where they
don't, the server's clock was set.
"""

from collections.abc import Callable

from peers.clock import DRIFT, Interval, Reading


class ServerClock:
    """Microseconds since 1970, as the server counts them. May be read from any thread."""

    def __init__(self, steady: Callable[[], int]) -> None:
        self.steady = steady
        self._bounds = Interval(0, 0)
        self._at: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the server was ever asked."""
        return self._at is not None

    def heard(self, reading: Reading) -> None:
        """Take a reading of the server's clock."""
        ahead = Interval(reading.peer_time - reading.received, reading.peer_time - reading.sent)
        if self._at is not None:
            slack = (reading.received - self._at) // DRIFT
            known = Interval(self._bounds.low - slack, self._bounds.high + slack)
            if known.meets(ahead):
                ahead = Interval(max(known.low, ahead.low), min(known.high, ahead.high))
        self._bounds, self._at = ahead, reading.received

    def now(self) -> int:
        """The server's time now."""
        return self.steady() + self._bounds.middle
