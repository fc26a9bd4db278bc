"""A node's time: its machine's clock, checked against one that never jumps and against its peers'.

The rules are in `peers.clock`; this reads the clocks and keeps what was measured. Safe to read from
any thread; `heard` and `judge` belong to one.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from peers import clock
from peers.clock import SECOND, ClockVerdict, Reading, Sure

JUMP = 2 * SECOND
"""A machine's clock that moves so far was set: by NTP, a person, or a fault."""
JUMP_KEPT = 60 * SECOND
"""A clock that was set is believed once it has kept that time for so long, unless a majority says
otherwise."""


def _log() -> Any:
    # Slow to import, and commands use clocks too.
    import structlog

    return structlog.get_logger()


def _machine() -> int:
    return time.time_ns() // 1000


def steady() -> int:
    """A clock that counts evenly from any start, in microseconds, also while the machine sleeps."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    # Where there is a boot clock, it counts on while the machine sleeps.
    return (time.monotonic_ns() if boot is None else time.clock_gettime_ns(boot)) // 1000


class Timekeeper:
    """Microseconds since 1970, from `machine`, which may be set at any moment, and `steady`, which
    counts evenly from any start."""

    def __init__(
        self, machine: Callable[[], int] = _machine, steady: Callable[[], int] = steady
    ) -> None:
        self._machine = machine
        self._steady = steady
        self._own = machine() - steady()
        """How far this node's clock is ahead of the steady one; a jump is not followed at once."""
        self._jumped_at: int | None = None
        self._jumped_to = 0
        """How far this node's clock was ahead of the steady one after a jump."""
        self._corrected: int | None = None
        """How far the time is ahead of the steady clock, if a majority says that this node's clock
        is wrong."""
        self._known: frozenset[str] = frozenset()
        self._readings: dict[str, Reading] = {}
        self._begun_at: int | None = None
        self._adopted_at: int | None = None
        """When the verdict of another process was last adopted."""
        self._sure: tuple[Sure, int] | None = None
        """What was sure last, and when by the steady clock; None while nothing is in doubt."""
        self.verdict = ClockVerdict()
        self.sends = True
        """Whether what this clock stamps may be sent: the node waits until the clock `is_settled`,
        and restamps what it stamped wrongly before."""

    def go_by(self, machine: Callable[[], int]) -> None:
        """Go by another clock than this machine's, such as one that several replicas share."""
        self._machine = machine
        self._own = machine() - self._steady()
        self._jumped_at = None

    def now(self) -> int:
        """The time as far as the node can tell."""
        steady = self._steady()
        own = self._follow(steady)
        return steady + (own if self._corrected is None else self._corrected)

    def own(self) -> int:
        """This machine's clock, uncorrected, as it is reported to peers."""
        steady = self._steady()
        return steady + self._follow(steady)

    def steady(self) -> int:
        """The steady clock, by which readings of a peer's clock are taken."""
        return self._steady()

    def trust(self, known: Sure) -> None:
        """Go on from what was sure when the node stopped, or from what an operator confirms."""
        self._sure = known, self._steady()

    def certainty(self) -> Sure:
        """The sure time now."""
        now, known = self.now(), self._sure
        if known is None:
            return Sure(now)
        confirmed = self.verdict.agreed and self.verdict.agreeing > 1
        return known[0].on(now, self._steady() - known[1], confirmed=confirmed)

    def sure(self) -> int:
        """The time that has surely come: what ends for good ends by it."""
        return self.certainty().end(self.now())

    @property
    def doubt(self) -> Sure | None:
        """The sure time while the node's clock is in doubt."""
        certain = self.certainty()
        return certain if certain.is_doubtful(self.now()) else None

    @property
    def has_jumped(self) -> bool:
        """Whether the machine's clock was set lately and is not followed yet."""
        return self._jumped_at is not None

    def begin(self) -> None:
        """Begin to wait for a verdict on the clocks: there is a peer to send to."""
        if self._begun_at is None:
            self._begun_at = self._steady()

    @property
    def is_settled(self) -> bool:
        """Whether the verdict on the clocks is good enough to send what is stamped."""
        begun = self._begun_at
        return begun is not None and self.verdict.is_settled(self._steady() - begun)

    def heard(self, peer: str, reading: Reading) -> None:
        """Take a reading of the clock of an authenticated peer."""
        self.begin()
        self._readings[peer] = reading
        self.judge(self._known | {peer})

    def adopt(self, verdict: ClockVerdict) -> None:
        """Go by the verdict of another process of this node, which goes by the same clock and has
        peers to compare it with."""
        before, self.verdict = self.verdict, verdict
        now = self._steady()
        self._adopted_at = now
        self._corrected = self._follow(now) + verdict.correction if verdict.correction else None
        self._tell(before)

    def judge(self, known: Iterable[str]) -> None:
        """Judge the clocks again. `known` are all mesh peers; readings of others are forgotten."""
        self._known = frozenset(known)
        if not self._readings and self._adopted_at is not None:
            if self._steady() - self._adopted_at < clock.SETTLING:
                # It has only just begun to compare clocks itself.
                return
            self._adopted_at = None
        self._readings = {
            name: reading for name, reading in self._readings.items() if name in self._known
        }
        now = self._steady()
        own = self._follow(now)
        if self._jumped_at is not None and now - self._jumped_at >= JUMP_KEPT:
            own = self._own = self._machine() - now
            self._jumped_at = None
        intervals = {name: reading.at(now, own) for name, reading in self._readings.items()}
        measured = {name: interval for name, interval in intervals.items() if interval is not None}
        before = self.verdict
        self.verdict = clock.reckon(measured, len(self._known) + 1)
        correction = self.verdict.correction
        self._corrected = own + correction if correction else None
        self._tell(before)

    def ahead(self, peer: str) -> int | None:
        """How far a peer's clock is ahead of the time; None without a recent reading."""
        reading = self._readings.get(peer)
        if reading is None:
            return None
        now = self._steady()
        interval = reading.at(now, self.now() - now)
        return None if interval is None else interval.middle

    def _follow(self, steady: int) -> int:
        """How far this node's clock is ahead of the steady one, without a recent jump."""
        offset = self._machine() - steady
        step = offset - self._own
        if abs(step) < JUMP:
            self._own, self._jumped_at = offset, None
        elif self._jumped_at is None or abs(offset - self._jumped_to) >= JUMP:
            self._jumped_at, self._jumped_to = steady, offset
            _log().warning("clock_jumped", seconds=step / SECOND)
        return self._own

    def _tell(self, before: ClockVerdict) -> None:
        now = self.verdict
        if (now.is_off, now.is_disputed) == (before.is_off, before.is_disputed):
            return
        facts: dict[str, Any] = {name: ahead / SECOND for name, ahead in now.apart}
        if now.is_off:
            _log().warning("clock_off", off_by_seconds=-now.correction / SECOND, peers_ahead=facts)
        elif now.is_disputed:
            _log().warning("clocks_disagree", peers_ahead=facts, clocks=now.clocks)
        else:
            _log().info("clock_right")
