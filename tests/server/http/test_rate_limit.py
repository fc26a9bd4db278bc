"""Requests per caller (design §6)."""

import pytest

from server.domain.errors import RateLimited
from server.http import rate_limit
from server.http.rate_limit import RateLimit


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
