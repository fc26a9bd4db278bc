"""How many connections a node takes."""

import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.http.connections import RESERVED, Connections, affordable
from server.util.log_once import RateLimitedLog


@given(st.lists(st.sampled_from(["a", "b", "c"])), st.integers(1, 5), st.integers(0, 3))
def test_never_more_than_the_limits(calls: list[str], most: int, most_of_one: int) -> None:
    connections = Connections(most, most_of_one, RateLimitedLog())
    entered: list[str] = []
    for address in calls:
        refusal = connections.enter(address)
        is_full = len(entered) == most
        has_all = bool(most_of_one) and entered.count(address) == most_of_one
        assert (refusal is not None) == (is_full or has_all)
        if refusal is None:
            entered.append(address)
    assert connections.open == len(entered)
    assert connections.refused == len(calls) - len(entered)
    for address in entered:
        connections.leave(address)
    assert connections.open == 0
    assert connections.enter("a") is None


def test_no_limit_for_one_address() -> None:
    connections = Connections(5, 0, RateLimitedLog())
    assert [connections.enter("a") is None for _ in range(6)] == [True] * 5 + [False]


@pytest.mark.parametrize(
    ("soft", "hard", "expected", "left"),
    [
        (1024, 4096, 4096 - RESERVED, 4096),
        (256, 1024, 1024 - RESERVED, 1024),
        (64, 64, 32, 64),
        (1024, 8192, 4096, 4096 + RESERVED),
    ],
)
def test_what_a_process_can_afford(soft: int, hard: int, expected: int, left: int) -> None:
    """In a process of its own: a limit that is lowered stays so."""
    script = (
        "import resource; from server.http.connections import affordable;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}));"
        "print(affordable(4096), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == [str(expected), str(left)], done.stderr


def test_where_there_is_enough_nothing_is_changed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert affordable(1) == 1
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
