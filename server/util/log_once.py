"""Names refusals in the log once for each cause, and not once for each try."""

import time
from collections.abc import Callable
from functools import lru_cache

import structlog

log = structlog.get_logger()

QUIET_SECONDS = 60.0
CAUSES_MAX = 1_000
"""Causes that are remembered; the one that was named longest ago is forgotten first."""


@lru_cache(maxsize=16_384)
def name_once(event: str, **about: str) -> None:
    """Log a warning, unless the very same was logged since the node's start."""
    log.warning(event, **about)


class LogOnce:
    """What was refused and why. `now` gives seconds, monotonic."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._causes: dict[tuple[object, ...], tuple[float, int]] = {}

    def refused(self, event: str, cause: tuple[object, ...], **more: object) -> None:
        """Log a warning with `more`, unless the same was logged for this cause within a minute.

        A later line says how many were left out before it.
        """
        now = self._now()
        key = (event, *cause)
        named_at, left_out = self._causes.get(key, (None, 0))
        if named_at is not None and now - named_at < QUIET_SECONDS:
            self._causes[key] = (named_at, left_out + 1)
            return
        self._causes.pop(key, None)
        self._causes[key] = (now, 0)
        if len(self._causes) > CAUSES_MAX:
            del self._causes[next(iter(self._causes))]
        log.warning(event, **more | ({"left_out": left_out} if left_out else {}))
