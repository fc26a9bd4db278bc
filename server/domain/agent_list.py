"""The agents that a caller can work with: who holds what, who gets mail, who is awake."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from server.domain.agents import identity

AWAKE = 5 * 60 * 1_000_000
"""Microseconds since its last call for which an agent counts as awake."""
REPOS_MAX = 20
"""Repos that are listed of an agent."""


class RepoOfAgent(NamedTuple):
    """A repo and its holder, with the project's id and name."""

    agent_id: str
    project_id: str
    project: str
    repo: str


class KnownAgent(NamedTuple):
    """An agent by its address. `node` is its home if that is another node; `last_seen` a stamp,
    None if this node has not seen it. `more_repos` counts those that `repos` leaves out."""

    address: str
    node: str | None
    has_mail: bool
    last_seen: int | None
    repos: list[RepoOfAgent]
    more_repos: int

    def is_awake(self, now: int) -> bool:
        return self.last_seen is not None and now - self.last_seen <= AWAKE


def known_agents(
    reachable: Mapping[str, str | None],
    holders: Iterable[RepoOfAgent],
    seen: Mapping[str, int],
    *,
    own: str | None,
    holders_only: bool,
) -> list[KnownAgent]:
    """Every agent except `own`, ordered by address.

    `reachable` has the agents that get mail, each with its home node (None for this one); `seen`
    the stamp of each agent's last call here. `holders_only` leaves out agents without a repo.
    """
    repos: dict[str, list[RepoOfAgent]] = {}
    for held in holders:
        repos.setdefault(identity(held.agent_id), []).append(held)
    addresses = set(repos) if holders_only else {*repos, *reachable}
    return [
        KnownAgent(
            address,
            node=reachable.get(address),
            has_mail=address in reachable,
            last_seen=None if reachable.get(address) else seen.get(address),
            repos=sorted(repos.get(address, ()))[:REPOS_MAX],
            more_repos=max(len(repos.get(address, ())) - REPOS_MAX, 0),
        )
        for address in sorted(addresses - {own})
    ]


# --- the overview -------------------------------------------------------------------------------


class WaitingWork(NamedTuple):
    """What waits for an agent: attention items of its repos, how many of them are urgent, and since
    when the oldest waits (a stamp, 0 without any); handoffs; unread messages."""

    items: int = 0
    urgent: int = 0
    since: int = 0
    handoffs: int = 0
    mail: int = 0

    @property
    def total(self) -> int:
        return self.items + self.handoffs + self.mail

    def plus(self, other: "WaitingWork") -> "WaitingWork":
        return WaitingWork(
            self.items + other.items,
            self.urgent + other.urgent,
            min(self.since or other.since, other.since or self.since),
            self.handoffs + other.handoffs,
            self.mail + other.mail,
        )


NO_WORK = WaitingWork()


class OverviewEntry(NamedTuple):
    """An agent and what waits for it; `work` is None where this node or the caller can't know."""

    agent: KnownAgent
    awake: bool
    work: WaitingWork | None

    @property
    def is_stalled(self) -> bool:
        """Whether it sleeps while something waits for it."""
        return not self.awake and self.agent.node is None and bool(self.work and self.work.total)

    @property
    def place(self) -> tuple[int, int, str]:
        """The order of the overview: those that sleep over work, then the most work first."""
        work = self.work.total if self.work else 0
        if self.agent.node is not None:
            group = 4
        elif self.awake:
            group = 1 if work else 2
        else:
            group = 0 if work else 3
        return group, -work, self.agent.address


def matches(agent: KnownAgent, query: str) -> bool:
    """Whether the agent's address, or the name of a repo that it holds, contains the query."""
    wanted = query.casefold()
    return wanted in agent.address.casefold() or any(
        wanted in held.repo.casefold() for held in agent.repos
    )


def overview(
    agents: Iterable[KnownAgent], work_of: Callable[[str], WaitingWork | None], now: int
) -> list[OverviewEntry]:
    """The agents in the order in which they need a look. `work_of` gives what waits for an address;
    None where the caller may not know it."""
    entries = [
        OverviewEntry(
            agent,
            awake=agent.node is None and agent.is_awake(now),
            work=work_of(agent.address) if agent.node is None else None,
        )
        for agent in agents
    ]
    return sorted(entries, key=lambda entry: entry.place)
