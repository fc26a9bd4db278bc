"""Limits on the number of peers, in total and by the way they joined (docs/mesh-trust.md).

Whoever knows the mesh token can join under any number of names, and must not use up the limit.
"""

from collections.abc import Mapping
from typing import Literal

from server.domain.errors import Forbidden

JoinMethod = Literal["token", "invite", "operator"]
"""How a peer joined: by the mesh token, by an invite, or through an operator of this node (`cacp
peers add`, `cacp join`, a peer's key, a registration without a key on the node's own machine)."""

PEERS_MAX = 100
"""Each peer costs a sender, which looks at every change."""
PEER_LIMITS: Mapping[JoinMethod, int] = {"token": 70, "invite": 20, "operator": PEERS_MAX}
"""How many of them may join in each way. Operators may use all that the other two ways leave."""
_WORDS: Mapping[JoinMethod, str] = {
    "token": " that joined by the mesh token",
    "invite": " that joined by invite",
    "operator": "",
}


def check_peer_limit(joined: Mapping[str, int], way: JoinMethod) -> None:
    """Raises Forbidden when one more peer would exceed a limit; `joined` counts the present peers
    by the way they joined."""
    if sum(joined.values()) >= PEERS_MAX:
        way = "operator"
    elif joined.get(way, 0) < PEER_LIMITS[way]:
        return
    limit = PEER_LIMITS[way]
    raise Forbidden(
        f"Peer limit reached: {limit} of {limit} peers{_WORDS[way]}. An operator of this node "
        "can remove one, or let you join in another way",
        reason="peer_limit",
        limit=limit,
        cameBy=way,
    )
