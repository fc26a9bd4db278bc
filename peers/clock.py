"""Hybrid logical clock (design §6), in microseconds since 1970.

The logical part is folded into the physical one: of two stamps in the same microsecond the later
is one higher. So a stamp is one integer, it orders all that a node has written and seen, and it
is a time that can be printed with six digits.
"""

from collections.abc import Mapping

TOLERATED = 2_000_000
"""An offset up to this is no worse than what a network adds; the clock is left alone."""
OFF = 30_000_000
"""A clock that is off by more is a fault that the operator should hear of."""


def tick(last: int, now: int) -> int:
    """The next stamp, after `last` and not before `now`."""
    return now if now > last else last + 1


def offset(sent: int, theirs: int, received: int) -> int:
    """How far a peer's clock is ahead of ours; it was read between `sent` and `received`."""
    return theirs - (sent + received) // 2


def correction(offsets: Mapping[str, int]) -> int:
    """What to add to our clock, given how far those of the authenticated peers are ahead of it.

    The median of all clocks, our own included: nodes that see the same peers come to the same
    time, and one false clock of three moves nobody.
    """
    clocks = sorted([0, *offsets.values()])
    middle = len(clocks) // 2
    median = clocks[middle] if len(clocks) % 2 else (clocks[middle - 1] + clocks[middle]) // 2
    return median if abs(median) > TOLERATED else 0


def is_off(correction: int) -> bool:
    """Whether our clock is so far from the peers' that the node counts as degraded."""
    return abs(correction) > OFF


def is_due(stamp: int, now: int, limit: int) -> bool:
    """Whether a fact with this stamp counts already: it is no more than `limit` ahead of now."""
    return stamp <= now + limit
