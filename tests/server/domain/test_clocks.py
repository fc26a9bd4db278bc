"""What is wrong with the time, in words (design §7)."""

from typing import Any

import pytest

from peers.clock import AHEAD, SECOND, ClockVerdict, Interval, reckon
from server.domain.clocks import Deferred, trouble

NOW = 1_800_000_000 * SECOND
HOUR = 3_600 * SECOND
WELL: dict[str, Any] = {"has_jumped": False, "newest": 0, "deferred": Deferred(), "now": NOW}


def verdict(*ahead: int) -> ClockVerdict:
    peers = {f"k{n}": Interval(one - SECOND, one + SECOND) for n, one in enumerate(ahead, 2)}
    return reckon(peers, len(peers) + 1)


@pytest.mark.parametrize("clocks", [(), (0,), (0, HOUR), (0, 0, -HOUR)])
def test_who_has_the_time_has_no_trouble_whatever_others_have(clocks: tuple[int, ...]) -> None:
    assert trouble(verdict(*clocks), **WELL) is None


@pytest.mark.parametrize(
    ("ahead", "way"), [(-HOUR, "1 h ahead of"), (5 * HOUR // 2, "2.5 h behind")]
)
def test_a_clock_that_a_majority_calls_wrong(ahead: int, way: str) -> None:
    found = trouble(verdict(ahead, ahead), **WELL)
    assert found is not None
    assert found.reason == "clock_off"
    assert f"clock is {way} the time that 2 of 3 nodes share" in found.detail
    assert "run NTP" in found.detail


def test_clocks_that_disagree_are_named_to_who_may_know_them() -> None:
    public = trouble(verdict(HOUR, -90 * SECOND), **WELL)
    named = trouble(verdict(HOUR, -90 * SECOND), **WELL, name=str.upper)
    assert public is not None
    assert named is not None
    assert public.reason == named.reason == "clocks_disagree"
    assert "a peer is 1 h ahead of this node, a peer is 1.5 min behind this node" in public.detail
    assert "K2 is 1 h ahead of this node, K3 is 1.5 min behind this node" in named.detail
    assert "Run NTP on each node" in named.detail


def test_a_clock_that_was_just_set() -> None:
    found = trouble(verdict(), **(WELL | {"has_jumped": True}))
    assert found is not None
    assert found.reason == "clock_jumped"


def test_what_is_deferred_is_named_with_the_way_out() -> None:
    waiting = {"deferred": Deferred(2, NOW + HOUR), "newest": NOW + HOUR}
    found = trouble(verdict(), **(WELL | waiting))
    assert found is not None
    assert found.reason == "deferred"
    assert "2 peer messages are deferred" in found.detail
    assert "`cacp clock accept`" in found.detail


def test_what_is_stored_and_stamped_ahead() -> None:
    assert trouble(verdict(), **(WELL | {"newest": NOW + AHEAD - 1})) is None
    found = trouble(verdict(), **(WELL | {"newest": NOW + 48 * HOUR}))
    assert found is not None
    assert found.reason == "stamps_ahead"
    assert "2027-01-17T08:00:00.000000+00:00, 2 d in the future" in found.detail
