"""Bans of agents, and whose bans hold on this node (docs/mesh-trust.md).

Each node signs its own ban statements. A node obeys its own, and those of the nodes that its
operator has named; otherwise one hostile member could ban everybody.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from server.domain.agents import identity

BANS_MAX = 200
"""How many statements of one node are kept, so that a hostile one can't fill the disk."""
REASON_MAX = 300


class TrustedBans(NamedTuple):
    """The nodes whose bans hold here: this one (`own`) and `others`, all without versions."""

    own: str
    others: frozenset[str] = frozenset()

    @classmethod
    def of(cls, own: str, others: Iterable[str] = ()) -> "TrustedBans":
        """From agent ids."""
        return cls(identity(own), frozenset(map(identity, others)) - {identity(own)})


class BanStatement(NamedTuple):
    """A node's latest statement about an agent: that it is banned, by its id and its key if known,
    or that it is no longer banned. `signature` is JSON; None for this node's own statement."""

    by_node: str
    agent: str
    public_key: str | None
    banned: bool
    stamp: int
    reason: str
    signature: str | None = None

    def body(self) -> dict[str, Any]:
        """The members that are signed."""
        return {
            "agent": self.agent,
            "public_key": self.public_key,
            "banned": self.banned,
            "stamp": self.stamp,
            "reason": self.reason,
        }


def deciding(
    statements: Iterable[BanStatement], trusted_bans: TrustedBans, banned_here: Collection[str] = ()
) -> BanStatement | None:
    """The ban that holds among all statements about an agent or its key; None when none holds.

    This node's own statements decide. Without any, those of the other trusted nodes count, except
    nodes that are `banned_here` themselves.
    """
    listed = list(statements)
    own = [statement for statement in listed if statement.by_node == trusted_bans.own]
    trusted = trusted_bans.others - set(banned_here)
    by_others = [statement for statement in listed if statement.by_node in trusted]
    banned = [
        statement
        for statement in own or by_others
        if statement.banned and statement.agent != trusted_bans.own
    ]
    return min(banned, key=lambda ban: ban.stamp, default=None)
