"""cacp/project/graph: who provides contracts to whom, and what a change of one reaches."""

from typing import Annotated

from pydantic import Field

from schemas.base import Count, Identifier, Params, Result
from schemas.contract import ContractStatus, ContractType
from schemas.matrix import AwaitedKind, CellState


class GraphParams(Params):
    project_id: Identifier
    contract_id: Identifier | None = None
    """The contract of which to return what a change reaches."""
    repo: Identifier | None = None
    """Only contracts to which the repo of this name or id is a party."""
    provider: Identifier | None = None
    """Only contracts that the repo of this name or id provides."""
    consumer: Identifier | None = None
    """Only contracts that the repo of this name or id consumes."""
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Identifier | None = None


class GraphRepo(Result):
    """A repo of the project, or a party that is not known here, which has no `name`."""

    repo_id: Identifier
    name: Identifier | None = None
    role: Identifier | None = None
    agent_id: Identifier | None = None
    provides: Count
    consumes: Count


class GraphPair(Result):
    """All contracts that one repo provides to another. `states` counts them by state: of the two
    repos' states in cacp/project/matrix the one that needs attention first. `state` is the first of
    those. `contract_id` and `contract` are the id and the name of the only contract, absent if
    there are several."""

    provider_id: Identifier
    consumer_id: Identifier
    contracts: Count
    state: CellState
    states: dict[CellState, Count]
    contract_id: Identifier | None = None
    contract: Identifier | None = None


class GraphParty(Result):
    """A party of a contract: its cell of cacp/project/matrix in short."""

    repo_id: Identifier
    state: CellState
    awaited: AwaitedKind | None = None


class GraphContract(Result):
    contract_id: Identifier
    name: Identifier
    type: ContractType
    version: int
    status: ContractStatus
    provider: GraphParty
    consumers: list[GraphParty]


class ReachedContract(Result):
    contract_id: Identifier
    name: Identifier
    provider_id: Identifier
    consumer_ids: list[Identifier]
    steps: Count


class ReachedRepo(Result):
    repo_id: Identifier
    steps: Count


class ContractReach(Result):
    """What a change of a contract reaches: its consumers after one step, the contracts that those
    provide after one, the consumers of these after two, and so on. The nearest first; the first
    contract is the one itself."""

    contract_id: Identifier
    contracts: list[ReachedContract]
    repos: list[ReachedRepo]


class ProjectGraph(Result):
    """`pairs` joins repos over all contracts of the project, those with most contracts first;
    `contracts` has those that were asked for, `matching` counts them over all pages."""

    project_id: Identifier
    name: Identifier
    repos: list[GraphRepo]
    pairs: list[GraphPair]
    contracts: list[GraphContract]
    matching: Count
    next_cursor: Identifier | None = None
    reach: ContractReach | None = None
