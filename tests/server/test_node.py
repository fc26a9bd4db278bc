"""Who a node is to its own methods."""

from hypothesis import given
from hypothesis import strategies as st

from peers.signing import SigningKey
from server.node import Node, Ticks


def test_its_workers_call_its_methods_as_its_own_agent() -> None:
    node = Node("aid://example.com/alpha@1.0.0", "alpha", True, True, SigningKey(bytes(32)))
    caller = node.caller
    assert (caller.agent_id, caller.repo) == (node.agent_id, "alpha")
    assert (caller.trust, caller.via) == ("verified", "local")


@given(st.lists(st.integers(0, 2**51), min_size=1))
def test_no_tick_comes_twice_whatever_the_stamps_are(stamps: list[int]) -> None:
    ticks = Ticks()
    found = [ticks.next_tick(stamp) for stamp in stamps]
    assert found == sorted(set(found))
    assert all(tick >= stamp * 4096 // 1000 for tick, stamp in zip(found, stamps, strict=True))
