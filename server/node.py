"""The identity of this node: its agent, its key, its rules."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from contracts.changes import ContractComparison
from peers.clock import FUTURE_LIMIT
from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.domain.acp.handoff import HandoffRules
from server.domain.acp.rules import MailRules
from server.domain.attention.items import ItemCache, WaitingItem
from server.domain.attention.overview import OpenSubjectNote, WeighedItem
from server.domain.bans import TrustedBans


async def _accept_any(endpoint: str) -> None:
    return


@dataclass(slots=True)
class Ticks:
    """Issues each tick, a 4096th of a millisecond, at most once."""

    last: int = 0

    def next_tick(self, stamp: int) -> int:
        """The tick of a stamp, or the next unused one."""
        self.last = max(self.last + 1, first_tick(stamp))
        return self.last


def first_tick(stamp: int) -> int:
    """The first tick of a stamp. No other stamp has it, and nobody else the stamp."""
    return stamp * 4096 // 1000


@dataclass(slots=True)
class NodeStart:
    """When this process began to serve, by the node's time: a stamp."""

    at: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """This node as its methods and workers know it."""

    agent_id: str
    repo: str
    loopback: bool
    takes_unkeyed_peers: bool
    key: SigningKey
    url: str = ""
    future_limit: int = FUTURE_LIMIT
    """Microseconds that a stamp of another node may be ahead of the time."""
    acp: MailRules = field(default_factory=MailRules)
    webhook_key: bytes = field(default=b"", repr=False)
    """The key from which the secrets of webhooks are derived."""
    handoffs: HandoffRules = field(default_factory=HandoffRules)
    check_card: Callable[[str], Awaitable[None]] = field(default=_accept_any, repr=False)
    """Refuses the agent at a URL if it has another major version of CACP
    (`util.outgoing_client`)."""
    attention: ItemCache[WaitingItem] = field(default_factory=ItemCache, repr=False)
    open_subjects: ItemCache[OpenSubjectNote] = field(
        default_factory=lambda: ItemCache(20_000), repr=False
    )
    """What the overview of attention shows of contracts and questions."""
    open_items: ItemCache[tuple[list[WeighedItem], dict[str, str]]] = field(
        default_factory=lambda: ItemCache(8), repr=False
    )
    """What was open in projects at the newest change, with who created each project."""
    comparisons: ItemCache[ContractComparison] = field(
        default_factory=lambda: ItemCache(500), repr=False
    )
    """Versions of contracts that were compared, by their digests."""
    start: NodeStart = field(default_factory=NodeStart, repr=False)
    """From when `last_calls` counts."""
    deferred_dropped: Counter[str] = field(default_factory=Counter, repr=False)
    """Deferred messages that were dropped since the start: refused, expired or too many."""
    overruled: Counter[str] = field(default_factory=Counter, repr=False)
    """Statements of peers that a more authoritative signer overruled, by peer, since the start."""
    deleted_refused: Counter[str] = field(default_factory=Counter, repr=False)
    """What peers sent of projects that were deleted here, by peer, since the start."""
    waiting_claims: Counter[str] = field(default_factory=Counter, repr=False)
    """Calls of cacp/attention/claim that wait now, by address."""
    ticks: Ticks = field(default_factory=Ticks, repr=False)
    last_calls: dict[str, int] = field(default_factory=dict, repr=False)
    """The stamp of each agent's last call since the start, by address."""
    bans_from: frozenset[str] = frozenset()
    """The nodes whose bans this node applies too."""

    @property
    def caller(self) -> Caller:
        """The node as the caller of its own methods."""
        return Caller(self.agent_id, self.repo, "verified", "local")

    @property
    def trusted_bans(self) -> TrustedBans:
        return TrustedBans.of(self.agent_id, self.bans_from)
