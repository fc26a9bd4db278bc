"""What an operator settles about mail, as the decisions need it."""

from dataclasses import dataclass, field

from schemas.acp import ACPPriority
from server.domain.acp.pushes import Terms
from server.domain.acp.rates import BROADCAST, DIRECT, Kind, Limit
from server.domain.acp.routing import PRIORITIES, Channel, State, capabilities, channels
from server.domain.acp.threads import Bounds
from server.domain.agents import identity


@dataclass(frozen=True, slots=True)
class MailRules:
    """`limits` without a kind set none for it."""

    limits: dict[Kind, Limit] = field(
        default_factory=lambda: {"direct": DIRECT, "broadcast": BROADCAST}
    )
    bounds: Bounds = field(default_factory=Bounds)
    coordinators: frozenset[str] = frozenset()
    """Addresses."""
    human_nodes: frozenset[str] = frozenset()
    """The peers, without version, whose word is taken on which of their agents are humans."""
    capabilities: dict[Channel, State] = field(
        default_factory=lambda: capabilities(frozenset(), frozenset())
    )
    pushes: Terms = field(default_factory=Terms)
    private_webhooks: bool = False
    """Whether a webhook may be in a private network."""
    wakes: frozenset[str] = frozenset()
    """The addresses of agents that have a command that wakes them."""
    wake_from: ACPPriority = "critical"
    """The least priority that wakes."""
    retention: int = 90 * 24 * 3600 * 1_000_000
    """Microseconds."""
    routes: dict[ACPPriority, list[Channel]] = field(init=False)
    """The channels that a message of each priority takes."""

    def __post_init__(self) -> None:
        routes = {one: channels(one, self.capabilities, self.wake_from) for one in PRIORITIES}
        object.__setattr__(self, "routes", routes)

    def is_coordinator(self, agent_id: str) -> bool:
        """Whether the operator gave this agent, in any of its versions, coordinator authority."""
        return identity(agent_id) in self.coordinators
