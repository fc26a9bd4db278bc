"""What pages show that is not in the database: when it changes, open pages look again."""

from collections.abc import Callable, Mapping
from functools import partial

from server.domain.agent_list import AWAKE
from server.mesh.peer_status import PeerStatus
from server.node import Node
from server.util.loops import Loops


def watch_outside(
    node: Node, now: Callable[[], int], status: PeerStatus, loops: Loops
) -> Callable[[], object]:
    """A function whose result changes with who is awake, how the peers stand, and which loops
    fail."""
    return partial(_seen, node.last_calls, now, status, loops)


def _seen(
    last_calls: Mapping[str, int], now: Callable[[], int], status: PeerStatus, loops: Loops
) -> object:
    since = now() - AWAKE
    awake = frozenset(address for address, at in last_calls.items() if at >= since)
    return awake, status.standings(), loops.failing
