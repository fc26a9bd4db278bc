"""Requests per caller and minute (design §6)."""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from server.domain.errors import RateLimited, Unavailable
from server.domain.request_rate import Bucket, allow, full
from server.store.connection import Connection
from server.store.postgresql import request_rates
from server.store.postgresql.request_rates import Granted

T = TypeVar("T")

CALLERS_MAX = 10_000
"""How many callers are remembered; the one that was idle longest is dropped first."""
PARTS = 20
"""A replica takes this part of a caller's limit at a time, so that N replicas together admit at
most N of these parts more in a minute than one would."""
KEPT_SECONDS = 5.0
"""For how long a replica may spend what it has taken; then it is lost, and the bucket has refilled
meanwhile."""
ASKING_MAX = 64
"""How many callers a replica may ask for at once; beyond, it counts alone for a moment, so that the
answer to its lease is not kept waiting."""


class CallerLimit(Protocol):
    """A limit of requests for each caller."""

    async def fill(self, caller: str) -> None:
        """Before `check`: learn from other replicas what the caller has left."""

    def check(self, caller: str, now: float) -> None:
        """Count one request. Raises RateLimited with `retryAfter`, in whole seconds."""

    def charge(self, caller: str, more: int) -> None:
        """Count `more` requests after an admitted one, also into debt."""

    def times(self, factor: int) -> "CallerLimit":
        """A separate limit of `factor` times the rate."""


class RateLimit:
    """A bucket for each caller. `per_minute` 0 sets no limit."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[str, Bucket] = {}

    def times(self, factor: int) -> CallerLimit:
        """A separate limit of `factor` times the rate."""
        return RateLimit(self._per_minute * factor)

    async def fill(self, caller: str) -> None:
        """Nothing: this process alone admits the caller."""

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
            raise _limited(self._per_minute, wait)

    def charge(self, caller: str, more: int) -> None:
        """Count `more` requests after an admitted one. The bucket may go into debt."""
        bucket = self._buckets.get(caller)
        if bucket is not None:
            self._buckets[caller] = bucket._replace(left=bucket.left - more)


Aside = Callable[[Callable[[Connection], Granted]], Awaitable[Granted]]
"""Runs a function on a connection to the database that replicas share (`Shared.aside`)."""


@dataclass(slots=True)
class _Share:
    """What a replica may admit of a caller without asking again; `left` is negative while the
    caller has used more. Times are seconds, monotonic."""

    left: int = 0
    until: float = 0.0
    retry_at: float | None = None
    """When the caller's bucket, which is empty, has a request again."""
    alone: bool = False
    """Whether the database could not be asked."""


class SharedRateLimit:
    """One bucket for each caller in the database, of which each replica takes a part at a time.

    `kind` tells the buckets of several limits apart.
    """

    def __init__(self, per_minute: int, aside: Aside, kind: str = "") -> None:
        self._per_minute = per_minute
        self._aside = aside
        self._kind = kind
        self._part = max(1, per_minute // PARTS)
        self._shares: dict[str, _Share] = {}
        self._alone = RateLimit(per_minute)
        """For a moment in which the database can't be asked."""
        self._asking = 0

    def times(self, factor: int) -> CallerLimit:
        return SharedRateLimit(self._per_minute * factor, self._aside, f"{self._kind}x{factor} ")

    async def fill(self, caller: str) -> None:
        if not self._per_minute:
            return
        now = time.monotonic()
        share = self._share(caller)
        if share.until <= now:
            share.left = min(share.left, 0)
        if share.left >= 1 or (share.retry_at is not None and now < share.retry_at):
            return
        share.alone = self._asking >= ASKING_MAX
        if share.alone:
            return
        owed, share.left = -share.left, 0
        self._asking += 1
        try:
            granted = await self._aside(
                partial(
                    request_rates.take,
                    caller=self._kind + caller,
                    per_minute=self._per_minute,
                    wanted=self._part,
                    owed=owed,
                )
            )
        except Unavailable:
            share.left -= owed
            share.retry_at, share.alone = None, True
            return
        finally:
            self._asking -= 1
        now = time.monotonic()
        share.left += granted.requests
        share.until = now + KEPT_SECONDS
        share.retry_at = None if granted.wait is None else now + granted.wait

    def check(self, caller: str, now: float) -> None:
        if not self._per_minute:
            return
        share = self._share(caller)
        if share.left >= 1:
            share.left -= 1
        elif share.retry_at is not None and now < share.retry_at:
            raise _limited(self._per_minute, share.retry_at - now)
        elif share.alone:
            self._alone.check(caller, now)
        else:
            # Another request has spent what there was; the next `fill` pays for this one.
            share.left -= 1

    def charge(self, caller: str, more: int) -> None:
        if self._per_minute:
            self._share(caller).left -= more

    def _share(self, caller: str) -> _Share:
        share = self._shares.pop(caller, None) or _Share()
        self._shares[caller] = share
        if len(self._shares) > CALLERS_MAX:
            del self._shares[next(iter(self._shares))]
        return share


def _limited(per_minute: int, wait: float) -> RateLimited:
    seconds = math.ceil(wait)
    return RateLimited(
        f"More than {per_minute} requests a minute; try again in {seconds} s", retryAfter=seconds
    )
