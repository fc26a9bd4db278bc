"""Logs a cause once, or once a minute, instead of at each attempt."""

import time
from collections.abc import Callable
from functools import lru_cache

import structlog

log = structlog.get_logger()

QUIET_SECONDS = 60.0
CAUSES_MAX = 1_000
"""How many causes are remembered; the one logged longest ago is dropped first."""


@lru_cache(maxsize=16_384)
def name_once(event: str, **about: str) -> None:
    """Log a warning, unless the same was logged since the node started."""
    log.warning(event, **about)


class RateLimitedLog:
    """Logs each cause of refusals once a minute at most. `now` returns monotonic seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._causes: dict[tuple[object, ...], tuple[float, int]] = {}

    def refused(self, event: str, cause: tuple[object, ...], **more: object) -> None:
        """Log a warning with `more`, unless one was logged for this cause within a minute.

        The next warning for the cause has `left_out`, the number of those suppressed.
        """
        now = self._now()
        key = (event, *cause)
        logged_at, left_out = self._causes.get(key, (None, 0))
        if logged_at is not None and now - logged_at < QUIET_SECONDS:
            self._causes[key] = (logged_at, left_out + 1)
            return
        self._causes.pop(key, None)
        self._causes[key] = (now, 0)
        if len(self._causes) > CAUSES_MAX:
            del self._causes[next(iter(self._causes))]
        log.warning(event, **more | ({"left_out": left_out} if left_out else {}))
