"""What time it is, and the hybrid logical clock (design §7), in microseconds.

**Stamps.** The logical part is folded into the physical one: of two stamps in the same microsecond
the later is one higher. So a stamp is one integer, and it is a time that can be printed with six
digits. The clock follows what the node has seen, but not what is far ahead of the time (`AHEAD`):
then it comes back to the time, and what takes the place of something is stamped after just that
(`after`).

**Time.** Each comparison with a peer bounds how far its clock is ahead of this node's: it was read
between the request and the response. The node's own clock is one more, zero give or take
`TOLERATED`. The time is where the intervals of a strict majority of all clocks meet; clocks that
don't answer count too (Marzullo's intersection, as in NTP). So a minority of false clocks has no
effect: a node's clock that is in the majority is left alone, and a correction lies within the
bounds of a true clock. Without a majority every node keeps its clock, and reports it.

**Stamps from the future.** A stamp that is ahead is accepted at once (`is_due`): deferring it would
hide a write, and concurrent writes of others, without a benefit. It wins over concurrent writes,
but not over those after it was seen, because they are stamped after it; and no clock continues from
it. The limit, a day by default, leaves room for a later stamp that corrects it and that other nodes
accept: beyond the limit a stamp is deferred, and joined when it is due. The rule depends only on
the stamp and the time, not on the sender or on what else is known. So nodes whose clocks agree
accept the same stamps, and all end equal.

**Expiry.** Mail that a clock years ahead has expired or archived, and responses that it has
dropped, do not come back with the right time. So expiry goes by sure time (`Sure`): it follows the
clock while that advances evenly, and follows a leap of days only once other clocks agree, or the
node has run with it for long enough.

Peers send each other their machines' clocks, never the corrected time: corrected by each other's
corrections, nodes would drift away from the time together, each confirming the others.
"""

from collections.abc import Mapping
from typing import NamedTuple

SECOND = 1_000_000
TOLERATED = SECOND
"""How far a clock is trusted: two that are no further apart than twice this tell the same time."""
DRIFT = 10_000
"""One second of drift per this many seconds: what was measured long ago bounds less."""
KEPT = 24 * 3600 * SECOND
"""A measurement that is older says nothing."""
OFF = 30 * SECOND
"""A clock that is off by more is a fault that the operator should hear of."""
AHEAD = 150 * SECOND
"""A stamp that is further ahead comes from a wrong clock: no clock continues from it."""
FUTURE_LIMIT = 24 * 3600 * SECOND
"""A stamp that is ahead by no more than this is taken at once, where nothing else is set."""
SETTLING = 5 * SECOND
"""How long a node whose peers tell another time waits for a majority before it sends."""
GAP = 3 * 24 * 3600 * SECOND
"""A clock that differs by more from what is expected of it is in doubt. A weekend is less, and so
is the default time of an offer."""
PROVING = 24 * 3600 * SECOND
"""A clock in doubt is believed once the node has run with it for this long: an operator had time
to read `/health`."""
STRIDE = 60 * SECOND
"""The most that counts between two looks at a clock in doubt: a machine that sleeps warns
no operator."""


# --- stamps -------------------------------------------------------------------------------------


def is_ahead(stamp: int, now: int) -> bool:
    """Whether a stamp is too far ahead to go on from."""
    return stamp >= now + AHEAD


def tick(last: int, now: int) -> int:
    """The next stamp: after `last`, unless that is too far ahead."""
    return now if now > last or is_ahead(last, now) else last + 1


def after(stamp: int, known: int) -> int:
    """The stamp of what takes the place of something that is stamped `known`."""
    return max(stamp, known + 1)


def is_due(stamp: int, now: int, limit: int) -> bool:
    """Whether a fact or message with this stamp is taken now: it is at most `limit` ahead."""
    return stamp <= now + limit


class Shift(NamedTuple):
    """How stamps that are ahead of `now` are moved back: by `by`, but not before `floor`, the last
    stamp that is not ahead. Their order stays."""

    now: int
    by: int
    floor: int

    def move(self, stamp: int) -> int:
        return stamp if stamp <= self.now else max(stamp - self.by, self.floor)


def shift_of(newest: int, floor: int, now: int) -> Shift | None:
    """How to move stamps up to `newest` back; None when `newest` is not too far ahead."""
    return Shift(now, newest - now, floor) if is_ahead(newest, now) else None


# --- what ends ----------------------------------------------------------------------------------


class Sure(NamedTuple):
    """The time that a node was sure of, and for how long it has run with a clock in doubt since."""

    time: int
    doubted: int = 0

    def on(self, now: int, elapsed: int, *, confirmed: bool = False) -> "Sure":
        """The sure time `elapsed` later, by a clock that never jumps, when the node's clock reads
        `now`. `confirmed`: other clocks agree with it."""
        expected = self.time + elapsed
        proven = self.doubted >= PROVING
        if confirmed or proven or not Sure(expected).is_doubtful(now):
            return Sure(now)
        return Sure(expected, self.doubted + min(elapsed, STRIDE))

    def is_doubtful(self, now: int) -> bool:
        """Whether a clock that reads `now` is in doubt."""
        return abs(now - self.time) > GAP

    def end(self, now: int) -> int:
        """The time by which things end: never later than the clock's."""
        return min(now, self.time)

    @property
    def left(self) -> int:
        """For how long the node has still to run until it believes the clock."""
        return max(0, PROVING - self.doubted)


# --- time ---------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """How far a clock is ahead of another, at least and at most."""

    low: int
    high: int

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2

    def meets(self, other: "Interval") -> bool:
        return self.low <= other.high and other.low <= self.high


class Reading(NamedTuple):
    """A peer's clock, read between `sent` and `received` of a clock here that never jumps."""

    sent: int
    peer_time: int
    received: int

    def at(self, now: int, own: int) -> Interval | None:
        """How far the peer's clock is ahead of this node's, which is `own` ahead of the clock that
        never jumps; None when the reading is too old."""
        age = now - self.received
        if age > KEPT:
            return None
        slack = TOLERATED + age // DRIFT
        low = self.peer_time - self.received - own
        return Interval(low - slack, low + self.received - self.sent + slack)


OWN = Interval(-TOLERATED, TOLERATED)


class ClockVerdict(NamedTuple):
    """What the clocks say together."""

    correction: int = 0
    """What to add to this node's clock; 0 without a majority."""
    agreed: bool = True
    """Whether a majority of all clocks shares the time."""
    agreeing: int = 1
    """How many do, at most."""
    clocks: int = 1
    """How many there are, with this node's and those that don't answer."""
    measured: int = 0
    """How many peers' clocks are known."""
    apart: tuple[tuple[str, int], ...] = ()
    """The peers whose clocks tell another time, and how far each is ahead of this node's."""

    @property
    def is_off(self) -> bool:
        """Whether a majority says that this node's clock is wrong, by more than network delays."""
        return abs(self.correction) > OFF

    @property
    def is_disputed(self) -> bool:
        """Whether peers tell another time, and no majority says which is right."""
        return not self.agreed and any(abs(ahead) > OFF for _, ahead in self.apart)

    def is_settled(self, waited: int) -> bool:
        """Whether to stamp by it: no measured peer disagrees, a majority says which is right, or
        the node has `waited` long enough, in microseconds."""
        return waited >= SETTLING or (self.measured > 0 and (self.agreed or not self.apart))


def reckon(peers: Mapping[str, Interval], clocks: int) -> ClockVerdict:
    """The verdict on the clocks of authenticated peers; `clocks` counts all, with this node's."""
    intervals = [OWN, *peers.values()]
    shared: list[tuple[int, Interval]] = []
    for low in {interval.low for interval in intervals}:
        # Where most meet begins where one of them does.
        meeting = [interval for interval in intervals if interval.low <= low <= interval.high]
        shared.append((len(meeting), Interval(low, min(interval.high for interval in meeting))))
    with_own = max(count for count, interval in shared if interval.meets(OWN))
    if with_own * 2 > clocks:
        agreeing, time = with_own, OWN
    else:
        agreeing, time = max(
            shared, key=lambda candidate: (candidate[0], -abs(candidate[1].middle))
        )
    agreed = agreeing * 2 > clocks
    apart = [
        (name, interval.middle)
        for name, interval in sorted(peers.items())
        if not interval.meets(OWN)
    ]
    correction = time.middle if agreed else 0
    return ClockVerdict(correction, agreed, agreeing, clocks, len(peers), tuple(apart))
