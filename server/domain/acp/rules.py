"""The operator's settings for mail."""

from dataclasses import dataclass, field

from schemas.acp import ACPPriority
from server.domain.acp.message_rate import BROADCAST, DIRECT, Kind, Limit
from server.domain.acp.pushes import Terms
from server.domain.acp.routing import PRIORITIES, Channel, State, capabilities, channels
from server.domain.acp.threads import Bounds
from server.domain.agents import identity


@dataclass(frozen=True, slots=True)
class MailRules:
    """The settings that decisions depend on. A kind that is not in `limits` has no limit."""

    limits: dict[Kind, Limit] = field(
        default_factory=lambda: {"direct": DIRECT, "broadcast": BROADCAST}
    )
    bounds: Bounds = field(default_factory=Bounds)
    coordinators: frozenset[str] = frozenset()
    """Addresses."""
    human_nodes: frozenset[str] = frozenset()
    """The peers, without version, that are believed about which of their agents are humans."""
    capabilities: dict[Channel, State] = field(
        default_factory=lambda: capabilities(frozenset(), frozenset())
    )
    remote_sessions: bool = False
    """Whether the session channel serves callers of other machines too."""
    pushes: Terms = field(default_factory=Terms)
    private_webhooks: bool = False
    """Whether webhooks in private networks are allowed."""
    wakes: frozenset[str] = frozenset()
    """The addresses of agents that have a wake command."""
    wake_from: ACPPriority = "critical"
    """The lowest priority that runs wake commands."""
    retention: int = 90 * 24 * 3600 * 1_000_000
    """Microseconds."""
    routes: dict[ACPPriority, list[Channel]] = field(init=False)
    """The channels for each priority."""

    def __post_init__(self) -> None:
        routes = {
            priority: channels(priority, self.capabilities, self.wake_from)
            for priority in PRIORITIES
        }
        object.__setattr__(self, "routes", routes)

    def coordinates(
        self,
        agent_id: str,
        *,
        operator: bool,
        human: bool,
        keyless: bool,
        restricted: bool = False,
    ) -> bool:
        """Whether a caller has coordinator authority outside teamspaces: the operator, a human, or
        an agent (in any of its versions) that the settings name and that calls with its key.

        A `keyless` caller is the node's own agent by its place alone, which is no credential. What
        is `restricted` is not every human's.
        """
        named = not keyless and identity(agent_id) in self.coordinators
        return operator or named or (human and not restricted)
