"""What an operator settles about mail, as the decisions need it."""

from dataclasses import dataclass, field

from server.domain.acp.rates import BROADCAST, DIRECT, Kind, Limit
from server.domain.acp.routing import Channel, State, capabilities
from server.domain.acp.threads import Bounds
from server.domain.agents import identity


@dataclass(frozen=True, slots=True)
class Rules:
    """`limits` without a kind set none for it."""

    limits: dict[Kind, Limit] = field(
        default_factory=lambda: {"direct": DIRECT, "broadcast": BROADCAST}
    )
    bounds: Bounds = field(default_factory=Bounds)
    coordinators: frozenset[str] = frozenset()
    """Addresses."""
    capabilities: dict[Channel, State] = field(
        default_factory=lambda: capabilities(frozenset(), frozenset())
    )
    retention: int = 90 * 24 * 3600 * 1_000_000
    """Microseconds."""

    def is_coordinator(self, agent_id: str) -> bool:
        """Whether the operator gave this agent, in any of its versions, coordinator authority."""
        return identity(agent_id) in self.coordinators
