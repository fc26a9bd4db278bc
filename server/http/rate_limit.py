"""Requests per caller and minute (design §6)."""

import math

from server.domain.errors import RateLimited
from server.domain.request_rate import Bucket, allow, full

CALLERS_MAX = 10_000
"""How many callers are remembered; the one that was idle longest is dropped first."""


class RateLimit:
    """A bucket for each caller. `per_minute` 0 sets no limit."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[str, Bucket] = {}

    def times(self, factor: int) -> "RateLimit":
        """A separate limit of `factor` times the rate."""
        return RateLimit(self._per_minute * factor)

    def check(self, caller: str, now: float) -> None:
        """Count one request at `now` (seconds, monotonic).

        Raises RateLimited with `retryAfter`, in whole seconds, when the caller's bucket is empty.
        """
        if not self._per_minute:
            return
        bucket = self._buckets.pop(caller, None) or full(now, self._per_minute)
        self._buckets[caller], wait = allow(bucket, now, self._per_minute)
        if len(self._buckets) > CALLERS_MAX:
            del self._buckets[next(iter(self._buckets))]
        if wait is not None:
            seconds = math.ceil(wait)
            raise RateLimited(
                f"More than {self._per_minute} requests a minute; try again in {seconds} s",
                retryAfter=seconds,
            )

    def charge(self, caller: str, more: int) -> None:
        """Count `more` requests after an admitted one. The bucket may go into debt."""
        bucket = self._buckets.get(caller)
        if bucket is not None:
            self._buckets[caller] = bucket._replace(left=bucket.left - more)
