"""Times as people read them."""

import doctest
from datetime import UTC, datetime

import pytest

from cli import times

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def test_the_examples_hold() -> None:
    assert doctest.testmod(times).failed == 0


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("2026-01-10T00:00:05+00:00", "just now"),
        ("2026-01-09T23:58:00", "2 min ago"),
        ("2026-01-09T21:00:00+00:00", "3 h ago"),
        ("2026-01-01T00:00:00+00:00", "9 d ago"),
    ],
)
def test_ago(then: str, said: str) -> None:
    assert times.ago(then, NOW) == said


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("2026-01-10T00:00:05+00:00", "now"),
        ("2026-01-09T00:00:05+00:00", "now"),
        ("2026-01-10T00:02:00", "in 2 min"),
        ("2026-01-19T00:00:00+00:00", "in 9 d"),
    ],
)
def test_until(then: str, said: str) -> None:
    assert times.until(then, NOW) == said
