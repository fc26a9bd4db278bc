"""Who provides contracts to whom, and what a change of a contract reaches."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from schemas.matrix import CellState
from server.domain.matrix import PartyCell

WORST_FIRST: Final[tuple[CellState, ...]] = (
    "broken",
    "stale",
    "objected",
    "awaited",
    "agreed",
    "building",
    "built",
    "verified",
)
_RANK = {state: place for place, state in enumerate(WORST_FIRST)}


class ProvidedContract(NamedTuple):
    """A contract with the cell of its provider, and of each party that consumes it."""

    contract_id: str
    provider: PartyCell
    consumers: tuple[PartyCell, ...]

    def is_consumed_by(self, repo_id: str) -> bool:
        return any(cell.repo_id == repo_id for cell in self.consumers)


def provided(contract_id: str, cells: Iterable[PartyCell], provider_id: str) -> ProvidedContract:
    """A contract by sides. `provider_id` is among the cells."""
    by_repo = {cell.repo_id: cell for cell in cells}
    provider = by_repo.pop(provider_id)
    return ProvidedContract(contract_id, provider, tuple(by_repo.values()))


class RepoPair(NamedTuple):
    """A repo, and one that consumes contracts of it."""

    provider_id: str
    consumer_id: str


def pairs(contracts: Iterable[ProvidedContract]) -> dict[RepoPair, dict[str, CellState]]:
    """The contracts of each pair of repos, with their states by id. A contract is as far between
    two repos as the one of them that needs attention first."""
    made: dict[RepoPair, dict[str, CellState]] = {}
    for contract in contracts:
        for consumer in contract.consumers:
            pair = RepoPair(contract.provider.repo_id, consumer.repo_id)
            state = worst((contract.provider.state, consumer.state))
            made.setdefault(pair, {})[contract.contract_id] = state
    return made


def worst(states: Iterable[CellState]) -> CellState:
    """The state that needs attention first. There is at least one.

    >>> worst(("verified", "awaited", "built"))
    'awaited'
    """
    return min(states, key=_RANK.__getitem__)


class Reach(NamedTuple):
    """What a change of a contract reaches, with the number of steps to each: the contract is 0, its
    consumers are 1, contracts that they provide 1, the consumers of those 2."""

    contracts: dict[str, int]
    repos: dict[str, int]


def reach(contracts: Iterable[ProvidedContract], contract_id: str) -> Reach:
    """What a change of a contract reaches: the repos that consume it, the contracts that those
    provide, in turn their consumers, and so on. Its provider is reached only around a cycle. The
    contract is one of `contracts`."""
    by_id: dict[str, ProvidedContract] = {}
    by_provider: dict[str, list[str]] = {}
    for contract in contracts:
        by_id[contract.contract_id] = contract
        by_provider.setdefault(contract.provider.repo_id, []).append(contract.contract_id)
    made = Reach({contract_id: 0}, {})
    steps, edge = 0, [contract_id]
    while edge:
        steps += 1
        repos = _new_repos(by_id, edge, made.repos)
        made.repos.update(dict.fromkeys(repos, steps))
        edge = [
            id for repo in repos for id in by_provider.get(repo, ()) if id not in made.contracts
        ]
        made.contracts.update(dict.fromkeys(edge, steps))
    return made


def _new_repos(
    by_id: Mapping[str, ProvidedContract], edge: Iterable[str], known: Mapping[str, int]
) -> list[str]:
    """The consumers of these contracts that are not known, each once."""
    consumers = (cell.repo_id for id in edge for cell in by_id[id].consumers)
    return [repo_id for repo_id in dict.fromkeys(consumers) if repo_id not in known]
