"""What a replica says is wrong with it among others."""

import pytest

from peers.clock import OFF
from server.cluster.trouble import VACANT_SECONDS, replica_trouble


@pytest.mark.parametrize(
    ("vacant", "ahead", "reason"),
    [
        (0.0, 0, None),
        (VACANT_SECONDS - 1, OFF, None),
        (VACANT_SECONDS, 0, "background_idle"),
        (VACANT_SECONDS, 10 * OFF, "background_idle"),
        (0.0, OFF + 1, "machine_clock_off"),
        (0.0, -OFF - 1, "machine_clock_off"),
    ],
)
def test_the_gravest_problem_is_named(vacant: float, ahead: int, reason: str | None) -> None:
    trouble = replica_trouble(vacant=vacant, machine_ahead=ahead)
    assert (None if trouble is None else trouble.reason) == reason


def test_which_way_a_clock_is_off_is_said() -> None:
    ahead, behind = (replica_trouble(vacant=0, machine_ahead=sign * 2 * OFF) for sign in (1, -1))
    assert ahead is not None
    assert behind is not None
    assert "60 s ahead of" in ahead.detail
    assert "60 s behind" in behind.detail
