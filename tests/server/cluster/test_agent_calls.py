"""Who is awake is the same at each replica."""

from peers.signing import SigningKey
from server.cluster import agent_calls
from server.domain.agent_list import AWAKE
from server.node import Node

NOW = 10 * AWAKE


def node(**calls: int) -> Node:
    made = Node("aid://example.com/a@1.0.0", "a", True, True, SigningKey(bytes(32)))
    made.last_calls.update(calls)
    return made


def test_calls_elsewhere_count_and_older_ones_change_nothing() -> None:
    one, other = node(anna=NOW, berta=NOW - AWAKE, carl=NOW - AWAKE - 1), node(anna=NOW - 5)
    agent_calls.hear(other, agent_calls.tell(one, NOW))
    assert other.last_calls == {"anna": NOW, "berta": NOW - AWAKE}
    agent_calls.hear(one, {"anna": NOW - 5})
    assert one.last_calls["anna"] == NOW


def test_of_many_the_latest_are_told() -> None:
    many = node(**{f"a{number}": NOW - number for number in range(agent_calls.TOLD_MAX + 10)})
    known = agent_calls.tell(many, NOW)
    assert len(known) == agent_calls.TOLD_MAX
    assert min(known.values()) == NOW - agent_calls.TOLD_MAX + 1
