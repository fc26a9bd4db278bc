"""When each agent called last, at whichever replica: who is awake is shown alike by all."""

from collections.abc import Mapping
from heapq import nlargest
from typing import Any

from server.domain.agent_list import AWAKE
from server.node import Node

TOLD_MAX = 2_000


def tell(node: Node, now: int) -> dict[str, int]:
    """The agents that are awake, as far as this replica knows, with the stamps of their calls; the
    latest when there are many."""
    awake = [(at, agent) for agent, at in node.last_calls.copy().items() if now - at <= AWAKE]
    return {agent: at for at, agent in nlargest(TOLD_MAX, awake)}


def hear(node: Node, calls: Mapping[str, Any]) -> None:
    """Take what another replica tells."""
    for agent, at in calls.items():
        if at > node.last_calls.get(agent, 0):
            node.last_calls[agent] = at
