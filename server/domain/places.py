"""How many peers a node takes, and how many of them by which secret (docs/mesh-trust.md).

Whoever knows the mesh token can come under any number of names: it must not fill every place.
"""

from collections.abc import Mapping
from typing import Literal

from server.domain.errors import Forbidden

Way = Literal["token", "invite", "operator"]
"""What let a peer in: the mesh token, an invite, or an operator of this node, by `cacp peers add`,
`cacp join`, a peer's key, or a registration without a key on the node's own machine."""

PEERS_MAX = 100
"""Each costs a sender, which looks at every change."""
PLACES: Mapping[Way, int] = {"token": 70, "invite": 20, "operator": PEERS_MAX}
"""Of these, how many by each way. An invite is good for one; what the other two leave is the
operators'."""
_WORDS: Mapping[Way, str] = {
    "token": "by the mesh token",
    "invite": "by invites",
    "operator": "in all",
}


def check_place(taken: Mapping[str, int], way: Way) -> None:
    """Raises Forbidden when a peer has no place left; `taken` counts those that are, by way."""
    if sum(taken.values()) >= PEERS_MAX:
        way = "operator"
    elif taken.get(way, 0) < PLACES[way]:
        return
    raise Forbidden(
        f"This node has {PLACES[way]} peers {_WORDS[way]}, which is its limit: an operator here "
        "removes one, or lets you in by another way",
        reason="peer_limit",
        limit=PLACES[way],
        cameBy=way,
    )
