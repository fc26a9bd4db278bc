"""The agents that a caller can work with: who holds what, who gets mail, who is awake."""

from collections.abc import Iterable, Mapping
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
    own: str,
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
