"""Requests per caller (design §6)."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from server.domain.errors import RateLimited, Unavailable
from server.domain.location import DatabaseUrl
from server.http import rate_limit
from server.http.rate_limit import PARTS, RateLimit, SharedRateLimit
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.request_rates import Granted
from server.store.postgresql.shared import PgShared
from tests.support.postgresql import database


def test_refuses_what_is_over_the_limit_and_says_when_to_come_back() -> None:
    limited = RateLimit(2)
    limited.check("a", 0.0)
    limited.check("a", 0.0)
    with pytest.raises(RateLimited, match="More than 2 requests a minute") as refusal:
        limited.check("a", 0.0)
    assert refusal.value.data == {"reason": "rate_limited", "retryAfter": 30}
    limited.check("a", 30.0)


def test_callers_do_not_spend_each_others_allowance() -> None:
    limited = RateLimit(1)
    limited.check("a", 0.0)
    limited.check("b", 0.0)


def test_zero_sets_no_limit() -> None:
    unlimited = RateLimit(0)
    for _ in range(10_000):
        unlimited.check("a", 0.0)


def test_forgets_the_caller_that_has_been_quiet_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "CALLERS_MAX", 2)
    limited = RateLimit(1)
    for caller in ("a", "b", "c"):
        limited.check(caller, 0.0)
    limited.check("a", 0.0)
    with pytest.raises(RateLimited):
        limited.check("c", 0.0)


def test_what_a_batch_lacks_it_owes() -> None:
    limited = RateLimit(60)
    limited.check("a", 0.0)
    limited.charge("a", 99)
    with pytest.raises(RateLimited) as refusal:
        limited.check("a", 0.0)
    assert refusal.value.data["retryAfter"] == 41
    limited.check("a", 41.0)


def test_without_a_limit_nothing_is_owed() -> None:
    unlimited = RateLimit(0)
    unlimited.check("a", 0.0)
    unlimited.charge("a", 99)
    unlimited.check("a", 0.0)


# --- of replicas --------------------------------------------------------------------------------


class BucketOfTest:
    """A caller's bucket in the database, without time."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.asked = 0
        self.away = False

    async def aside(self, function: Callable[..., Granted]) -> Granted:
        if self.away:
            raise Unavailable("away", reason="storage_failed")
        self.asked += 1
        given: dict[str, Any] = function.keywords  # type: ignore[attr-defined]
        self.left -= given["owed"]
        granted = max(0, min(given["wanted"], self.left))
        self.left -= granted
        return Granted(granted, None if granted else 7.0)


async def admitted(limit: SharedRateLimit, count: int) -> int:
    """How many of so many requests of a caller are admitted."""
    good = 0
    for _ in range(count):
        await limit.fill("a")
        try:
            limit.check("a", time.monotonic())
        except RateLimited as refusal:
            assert refusal.data["retryAfter"] == 7  # noqa: PT017 - of each that is refused
        else:
            good += 1
    return good


def test_replicas_admit_together_what_one_would() -> None:
    async def play() -> None:
        bucket = BucketOfTest(100)
        limits = [SharedRateLimit(100, bucket.aside) for _ in range(3)]
        good = await asyncio.gather(*(admitted(limit, 60) for limit in limits))
        assert sum(good) == 100
        assert bucket.asked <= PARTS + 2 * len(limits), "one that is refused asks no more"

    asyncio.run(play())


def test_what_a_batch_lacks_it_owes_at_all_replicas() -> None:
    async def play() -> None:
        bucket = BucketOfTest(100)
        one, other = (SharedRateLimit(100, bucket.aside) for _ in range(2))
        assert await admitted(one, 1) == 1
        one.charge("a", 98)
        assert await admitted(one, 1) == 1
        assert await admitted(other, 3) == 0

    asyncio.run(play())


def test_without_the_database_each_counts_alone() -> None:
    async def play() -> None:
        bucket = BucketOfTest(0)
        bucket.away = True
        limit = SharedRateLimit(10, bucket.aside)
        good = 0
        for _ in range(15):
            await limit.fill("a")
            with suppress(RateLimited):
                limit.check("a", 0.0)
                good += 1
        assert good == 10

    asyncio.run(play())


def test_what_was_taken_and_not_spent_in_time_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        bucket = BucketOfTest(10)
        limit = SharedRateLimit(100, bucket.aside)
        monkeypatch.setattr(rate_limit, "KEPT_SECONDS", -1.0)
        assert await admitted(limit, 1) == 1
        assert await admitted(limit, 1) == 1
        assert (bucket.asked, bucket.left) == (2, 0)

    asyncio.run(play())


def test_limits_of_two_kinds_are_two() -> None:
    async def play(url: DatabaseUrl) -> None:
        shared = PgShared("r", lambda: PgConnection(url))
        limit = SharedRateLimit(2, shared.aside)
        assert await counted(limit) == 2
        # More may come in while it is counted.
        assert 20 <= await counted(limit.times(10)) <= 22
        await shared.close()

    with database() as url:
        asyncio.run(play(url))


async def counted(limit: rate_limit.CallerLimit) -> int:
    good = 0
    for _ in range(30):
        await limit.fill("a")
        with suppress(RateLimited):
            limit.check("a", time.monotonic())
            good += 1
    return good
