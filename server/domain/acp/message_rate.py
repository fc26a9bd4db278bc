"""Rate limits of senders (acp-canonical §10.3): at most N messages in any window."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from server.domain.errors import RateLimited

Kind = Literal["direct", "broadcast", "refused"]
SECOND = 1_000_000


class Limit(NamedTuple):
    """At most `most` in any `window` of microseconds."""

    most: int
    window: int


DIRECT = Limit(10, 60 * SECOND)
BROADCAST = Limit(5, 3_600 * SECOND)
REFUSED = Limit(20, 60 * SECOND)
"""Mistakes that are audited, so that a caller that repeats one can't fill the disk."""


def allow(stamps: Sequence[int], now: int, limit: Limit) -> tuple[list[int], int | None]:
    """Count one more at `now`; returns the stamps to remember, and None.

    When the window is full, returns the stamps unchanged and the microseconds until it has room. A
    clock that was set back makes no room: later stamps count as `now`.
    """
    kept = [min(stamp, now) for stamp in stamps if stamp > now - limit.window]
    if len(kept) < limit.most:
        return [*kept, now], None
    if not limit.most:
        return [], limit.window
    return kept, kept[len(kept) - limit.most] + limit.window - now


def charge(stamps: Sequence[int], now: int, limit: Limit, kind: Kind) -> list[int]:
    """Count one more message at `now`; the stamps to remember. Raises RateLimited."""
    kept, wait = allow(stamps, now, limit)
    if wait is not None:
        seconds = -(-wait // SECOND)
        raise RateLimited(
            f"{limit.most} {kind} messages in {limit.window // SECOND} s are allowed; "
            f"try again in {seconds} s",
            retryAfter=seconds,
            kind=kind,
            limit=limit.most,
        )
    return kept
