"""Who is no peer any more, and whose word that takes (docs/mesh-trust.md).

Each node says for itself whom it bans, and signs it. A node goes by its own word, and beside that
by the word of the nodes that its operator has named, and of no others: else one hostile member
could ban everybody.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from server.domain.agents import identity

BANS_MAX = 200
"""What is kept of one node's word: a hostile one must not fill the disk."""
REASON_MAX = 300


class Heeds(NamedTuple):
    """Whose bans hold here: the node's own, and those of `others`; all without their versions."""

    own: str
    others: frozenset[str] = frozenset()

    @classmethod
    def of(cls, own: str, others: Iterable[str] = ()) -> "Heeds":
        """From agent ids."""
        return cls(identity(own), frozenset(map(identity, others)) - {identity(own)})


class BanStatement(NamedTuple):
    """What a node has last said of an agent: that it is banned, by its id and by its key if that
    was known, or that it is so no more. `signature` is JSON; None for this node's own word."""

    by_node: str
    agent: str
    public_key: str | None
    banned: bool
    stamp: int
    reason: str
    signature: str | None = None

    def body(self) -> dict[str, Any]:
        """What is signed."""
        return {
            "agent": self.agent,
            "public_key": self.public_key,
            "banned": self.banned,
            "stamp": self.stamp,
            "reason": self.reason,
        }


def deciding(
    said: Iterable[BanStatement], heeds: Heeds, banned_here: Collection[str] = ()
) -> BanStatement | None:
    """The ban that holds, of all that is said of an agent or its key; None when none does.

    What this node itself says decides; where it says nothing, the word of those it heeds counts,
    but of those who are `banned_here` themselves.
    """
    found = list(said)
    own = [one for one in found if one.by_node == heeds.own]
    heeded = heeds.others - set(banned_here)
    by_others = [one for one in found if one.by_node in heeded]
    banned = [one for one in own or by_others if one.banned and one.agent != heeds.own]
    return min(banned, key=lambda one: one.stamp, default=None)
