"""A node's time: its machine's clock, checked against one that never jumps and against its peers'.

The rule is `peers.clock`; this reads the clocks and keeps what was measured. Safe to read from any
thread; what is measured is told on one.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from peers import clock
from peers.clock import SECOND, Reading, Sure, Verdict

JUMP = 2 * SECOND
"""A machine's clock that moves so far of itself was set: by NTP, a hand, or a fault."""
JUMP_KEPT = 60 * SECOND
"""A clock that was set is believed once it has stood by it for so long, if nobody tells better."""

log = structlog.get_logger()


def _machine() -> int:
    return time.time_ns() // 1000


def _steady() -> int:
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    # It counts on while the machine sleeps, where there is one.
    return (time.monotonic_ns() if boot is None else time.clock_gettime_ns(boot)) // 1000


class Timekeeper:
    """Microseconds since 1970, from `machine`, which may be set at any moment, and `steady`, which
    counts on evenly from anywhere."""

    def __init__(
        self, machine: Callable[[], int] = _machine, steady: Callable[[], int] = _steady
    ) -> None:
        self._machine = machine
        self._steady = steady
        self._own = machine() - steady()
        """How far our clock is ahead of the steady one; a jump is not followed at once."""
        self._jumped_at: int | None = None
        self._jumped_to = 0
        """How far our clock was ahead of the steady one when it had jumped."""
        self._corrected: int | None = None
        """How far the time is, where a majority says that our clock is wrong."""
        self._known: frozenset[str] = frozenset()
        self._readings: dict[str, Reading] = {}
        self._begun_at: int | None = None
        self._sure: tuple[Sure, int] | None = None
        """What was sure last, and when by the steady clock; None: nothing is in doubt."""
        self.verdict = Verdict()
        self.sends = True
        """Whether what is stamped by this clock goes to others: the node waits until it
        `is_settled`, and stamps anew what it stamped before it knew better."""

    def now(self) -> int:
        """The time as far as the node can tell."""
        steady = self._steady()
        own = self._follow(steady)
        return steady + (own if self._corrected is None else self._corrected)

    def own(self) -> int:
        """This machine's clock, uncorrected, which is what peers are told."""
        steady = self._steady()
        return steady + self._follow(steady)

    def steady(self) -> int:
        """What readings of a peer's clock are taken by."""
        return self._steady()

    def trust(self, known: Sure) -> None:
        """Go on from what was sure when the node stopped, or what an operator confirms."""
        self._sure = known, self._steady()

    def certainty(self) -> Sure:
        """What is sure now."""
        now, known = self.now(), self._sure
        if known is None:
            return Sure(now)
        confirmed = self.verdict.agreed and self.verdict.agreeing > 1
        return known[0].on(now, self._steady() - known[1], confirmed=confirmed)

    def sure(self) -> int:
        """The time that is sure to have come: what ends for good goes by it."""
        return self.certainty().end(self.now())

    @property
    def doubt(self) -> Sure | None:
        """What is sure, while the node's clock is in doubt."""
        found = self.certainty()
        return found if found.is_doubtful(self.now()) else None

    @property
    def has_jumped(self) -> bool:
        """Whether the machine's clock was set a moment ago, and is not followed yet."""
        return self._jumped_at is not None

    def begin(self) -> None:
        """There is a peer to send to: the wait for what the clocks say together begins."""
        if self._begun_at is None:
            self._begun_at = self._steady()

    @property
    def is_settled(self) -> bool:
        """Whether what the clocks say is enough to stamp by for others."""
        begun = self._begun_at
        return begun is not None and self.verdict.is_settled(self._steady() - begun)

    def heard(self, peer: str, reading: Reading) -> None:
        """A peer that has proved who it is has told its clock."""
        self.begin()
        self._readings[peer] = reading
        self.judge(self._known | {peer})

    def judge(self, known: Iterable[str]) -> None:
        """Go by what was heard of these peers, all that there are, as it stands now."""
        self._known = frozenset(known)
        self._readings = {name: one for name, one in self._readings.items() if name in self._known}
        now = self._steady()
        own = self._follow(now)
        if self._jumped_at is not None and now - self._jumped_at >= JUMP_KEPT:
            own = self._own = self._machine() - now
            self._jumped_at = None
        intervals = {name: one.at(now, own) for name, one in self._readings.items()}
        measured = {name: one for name, one in intervals.items() if one is not None}
        before = self.verdict
        self.verdict = clock.reckon(measured, len(self._known) + 1)
        correction = self.verdict.correction
        self._corrected = own + correction if correction else None
        self._tell(before)

    def ahead(self, peer: str) -> int | None:
        """How far a peer's clock is ahead of the time; None when it was not measured of late."""
        reading = self._readings.get(peer)
        if reading is None:
            return None
        now = self._steady()
        found = reading.at(now, self.now() - now)
        return None if found is None else found.middle

    def _follow(self, steady: int) -> int:
        """How far our clock is ahead of the steady one, leaving out what it has just jumped."""
        found = self._machine() - steady
        step = found - self._own
        if abs(step) < JUMP:
            self._own, self._jumped_at = found, None
        elif self._jumped_at is None or abs(found - self._jumped_to) >= JUMP:
            self._jumped_at, self._jumped_to = steady, found
            log.warning("clock_jumped", seconds=step / SECOND)
        return self._own

    def _tell(self, before: Verdict) -> None:
        now = self.verdict
        if (now.is_off, now.is_disputed) == (before.is_off, before.is_disputed):
            return
        facts: dict[str, Any] = {name: ahead / SECOND for name, ahead in now.apart}
        if now.is_off:
            log.warning("clock_off", off_by_seconds=-now.correction / SECOND, peers_ahead=facts)
        elif now.is_disputed:
            log.warning("clocks_disagree", peers_ahead=facts, clocks=now.clocks)
        else:
            log.info("clock_right")
