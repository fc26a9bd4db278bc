"""Who this node is: its agent, its key, its rules."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from peers.clock import FUTURE_LIMIT
from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.domain.acp.handoff import HandoffRules
from server.domain.acp.rules import MailRules
from server.domain.bans import Heeds


async def _unasked(endpoint: str) -> None:
    return


@dataclass(slots=True)
class Ticks:
    """Counts 4096ths of a millisecond, and none of them twice."""

    last: int = 0

    def at(self, stamp: int) -> int:
        """The tick of a stamp, or the next that is left."""
        self.last = max(self.last + 1, stamp * 4096 // 1000)
        return self.last


@dataclass(frozen=True, slots=True)
class Node:
    """Who this node is, as its methods and workers need to know it."""

    agent_id: str
    repo: str
    loopback: bool
    takes_unkeyed_peers: bool
    key: SigningKey
    url: str = ""
    future_limit: int = FUTURE_LIMIT
    """Microseconds that a stamp from elsewhere may be ahead of our time."""
    acp: MailRules = field(default_factory=MailRules)
    webhook_key: bytes = field(default=b"", repr=False)
    """What the secrets of webhooks are made from."""
    handoffs: HandoffRules = field(default_factory=HandoffRules)
    check_card: Callable[[str], Awaitable[None]] = field(default=_unasked, repr=False)
    """Refuses an agent that listens at a URL and speaks another CACP (`util.outgoing_client`)."""
    deferred_dropped: Counter[str] = field(default_factory=Counter, repr=False)
    """Deferred messages that were lost since this node started: refused, expired or too many."""
    overruled: Counter[str] = field(default_factory=Counter, repr=False)
    """What peers brought that gave way to the word of who may say it, by peer, since the start."""
    ticks: Ticks = field(default_factory=Ticks, repr=False)
    bans_from: frozenset[str] = frozenset()
    """The nodes whose bans hold here too."""

    @property
    def caller(self) -> Caller:
        """The node as the caller of its own methods."""
        return Caller(self.agent_id, self.repo, "verified", "local")

    @property
    def heeds(self) -> Heeds:
        return Heeds.of(self.agent_id, self.bans_from)
