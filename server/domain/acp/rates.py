"""How often a sender may send (acp-canonical §10.3): so many in any window of that length."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["direct", "broadcast", "refused"]
SECOND = 1_000_000


class Limit(NamedTuple):
    """So many in a window of so many microseconds."""

    most: int
    window: int


DIRECT = Limit(10, 60 * SECOND)
BROADCAST = Limit(5, 3_600 * SECOND)
REFUSED = Limit(20, 60 * SECOND)
"""Mistakes that are audited: a caller that goes on with one must not fill the disk."""


def allow(stamps: Sequence[int], now: int, limit: Limit) -> tuple[list[int], int | None]:
    """Count one more at `now`: the stamps to remember, and None.

    When the window is full, the stamps as they count now, and the microseconds until it has room.
    A clock that went back makes room for nothing; what was counted ahead of it counts as now.
    """
    kept = [min(stamp, now) for stamp in stamps if stamp > now - limit.window]
    if len(kept) < limit.most:
        return [*kept, now], None
    if not limit.most:
        return [], limit.window
    return kept, kept[len(kept) - limit.most] + limit.window - now
