"""What time it is, and the hybrid logical clock (design §7), in microseconds.

**Stamps.** The logical part is folded into the physical one: of two stamps in the same microsecond
the later is one higher. So a stamp is one integer, and it is a time that can be printed with six
digits. The clock follows what the node has seen, but not what is far ahead of the time (`AHEAD`):
then it comes back to the time, and what takes the place of something is stamped after just that
(`after`).

**Time.** Each comparison with a peer bounds how far its clock is ahead of ours: it was read between
our sending and our receiving. Our own clock is one more, zero give or take `TOLERATED`. The time is
where the intervals of a strict majority of all clocks meet, those that don't answer counted too
(Marzullo's intersection, as NTP's). So a minority of false clocks moves nobody: an own clock that
is in the majority is left alone, and a correction lies within the bounds of a true one. Without a
majority nobody's word is better than another's: every node keeps its clock, and says so.

**Stamps from the future.** What is stamped ahead is taken at once (`is_due`): to defer it would
hide a write, and what others wrote beside it, and protect nobody. It wins over what is written at
the same time elsewhere, and over nothing written once it was seen, for that is stamped after it;
and no clock goes on from it. The bound, a day by default, is there so that there always is a later
stamp to correct with, one that others take: beyond it a stamp is deferred, and joined when it is
due. The rule asks for nothing but the stamp and the time: not who sent it, nor what else is known
of it. So nodes that tell the same time take the same, whatever is between them, and all end equal.

**What ends.** Mail that expires, what is archived, an answer that is forgotten: what was ended by a
clock that was years ahead does not come back with the right time. So that goes by the time that is
sure to have come (`Sure`): it follows the clock while the clock goes on from where it was, and
passes a leap of days only once something else than this clock stands by it.

What peers tell is their machine's clock, never the corrected time: corrected towards each other's
corrections, nodes would drift together away from the time, each confirming the others.
"""

from collections.abc import Mapping
from typing import NamedTuple

SECOND = 1_000_000
TOLERATED = SECOND
"""How far a clock is trusted: two that are no further apart than twice this tell the same time."""
DRIFT = 10_000
"""A second of drift in so many seconds: what was measured long ago bounds less."""
KEPT = 24 * 3600 * SECOND
"""A measurement that is older says nothing."""
OFF = 30 * SECOND
"""A clock that is off by more is a fault that the operator should hear of."""
AHEAD = 150 * SECOND
"""A stamp that is further ahead is a wrong clock's: no clock goes on from it."""
FUTURE_LIMIT = 24 * 3600 * SECOND
"""A stamp that is ahead by no more than this is taken at once, where nothing else is set."""
SETTLING = 5 * SECOND
"""How long a node that hears another time waits for the word of a majority before it sends."""
GAP = 3 * 24 * 3600 * SECOND
"""A clock that is further from where it was, by what has passed since, is in doubt: a weekend is
less, and so is the default time of an offer."""
PROVING = 24 * 3600 * SECOND
"""A clock in doubt is believed once the node has run with it for so long: as long somebody could
read what `/health` says."""
STRIDE = 60 * SECOND
"""What counts of one look at a clock in doubt: a machine that sleeps warns nobody."""


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
    """Whether what has this stamp is taken already: it is no more than `limit` ahead."""
    return stamp <= now + limit


class Shift(NamedTuple):
    """How stamps that are ahead of `now` are brought back to it: by so much, but not before
    `floor`, the last that is not ahead. Their order stays."""

    now: int
    by: int
    floor: int

    def move(self, stamp: int) -> int:
        return stamp if stamp <= self.now else max(stamp - self.by, self.floor)


def shift_of(newest: int, floor: int, now: int) -> Shift | None:
    """How to bring back what reaches to `newest`; None when it is not too far ahead to go on."""
    return Shift(now, newest - now, floor) if is_ahead(newest, now) else None


# --- what ends ----------------------------------------------------------------------------------


class Sure(NamedTuple):
    """The time that a node was sure of, and for how long it has run with a clock in doubt since."""

    time: int
    doubted: int = 0

    def on(self, now: int, elapsed: int, *, confirmed: bool = False) -> "Sure":
        """What is sure `elapsed` later, by a clock that never jumps, when the node's clock says
        `now`. `confirmed`: somebody else stands by it."""
        expected = self.time + elapsed
        proven = self.doubted >= PROVING
        if confirmed or proven or not Sure(expected).is_doubtful(now):
            return Sure(now)
        return Sure(expected, self.doubted + min(elapsed, STRIDE))

    def is_doubtful(self, now: int) -> bool:
        """Whether a clock that says so is in doubt."""
        return abs(now - self.time) > GAP

    def end(self, now: int) -> int:
        """By when things end: never later than the clock says."""
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
    """A peer's clock read `theirs`, some time between `sent` and `received` of a clock of ours that
    never jumps."""

    sent: int
    theirs: int
    received: int

    def at(self, now: int, own: int) -> Interval | None:
        """How far the peer's clock is ahead of ours, which is `own` ahead of the one that never
        jumps; None when the reading is too old to tell."""
        age = now - self.received
        if age > KEPT:
            return None
        slack = TOLERATED + age // DRIFT
        low = self.theirs - self.received - own
        return Interval(low - slack, low + self.received - self.sent + slack)


OWN = Interval(-TOLERATED, TOLERATED)


class Verdict(NamedTuple):
    """What the clocks say together."""

    correction: int = 0
    """What to add to our clock; 0 without a majority."""
    agreed: bool = True
    """Whether a majority of all clocks shares the time."""
    agreeing: int = 1
    """How many do, at most."""
    clocks: int = 1
    """How many there are, ours and those that don't answer counted."""
    measured: int = 0
    """How many peers' clocks are known."""
    apart: tuple[tuple[str, int], ...] = ()
    """The peers whose clocks don't tell our time, and how far each is ahead of ours."""

    @property
    def is_off(self) -> bool:
        """Whether a majority says that our clock is wrong, by more than a network's delays."""
        return abs(self.correction) > OFF

    @property
    def is_disputed(self) -> bool:
        """Whether others tell another time, and no majority says who is right."""
        return not self.agreed and any(abs(ahead) > OFF for _, ahead in self.apart)

    def is_settled(self, waited: int) -> bool:
        """Whether to go by it: nobody who was heard disagrees, a majority tells who is right, or
        none has come for so many microseconds."""
        return waited >= SETTLING or (self.measured > 0 and (self.agreed or not self.apart))


def reckon(peers: Mapping[str, Interval], clocks: int) -> Verdict:
    """What to make of the clocks of authenticated peers, where there are so many with our own."""
    every = [OWN, *peers.values()]
    shared: list[tuple[int, Interval]] = []
    for low in {one.low for one in every}:
        # Where most meet begins where one of them does.
        met = [one for one in every if one.low <= low <= one.high]
        shared.append((len(met), Interval(low, min(one.high for one in met))))
    with_ours = max(count for count, one in shared if one.meets(OWN))
    if with_ours * 2 > clocks:
        agreeing, time = with_ours, OWN
    else:
        agreeing, time = max(shared, key=lambda one: (one[0], -abs(one[1].middle)))
    agreed = agreeing * 2 > clocks
    apart = [(name, one.middle) for name, one in sorted(peers.items()) if not one.meets(OWN)]
    correction = time.middle if agreed else 0
    return Verdict(correction, agreed, agreeing, clocks, len(peers), tuple(apart))
