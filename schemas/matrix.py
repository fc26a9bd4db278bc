"""cacp/project/matrix: how far each repo is with each contract, and what is missing to land."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Count, Identifier, Params, Result, Timestamp
from schemas.contract import ContractStatus, ContractType

CellState = Literal[
    "awaited", "objected", "agreed", "building", "built", "verified", "stale", "broken"
]
"""How far a party is with a contract: its response is awaited; it asked for a change or rejected;
it agreed; it builds; it has built; the contract is verified; it built an older version; what it
built failed a verification."""
AwaitedKind = Literal["respond", "revise", "implement", "repair", "verify"]
"""What a contract waits for from a party: a kind of cacp/attention/list."""
Evidence = Literal["word", "receipt"]
"""On what a state rests. `word`: a repo's agent said so. `receipt`: a runner's receipts prove
it."""
Side = Literal["provider", "consumer"]


class MatrixParams(Params):
    project_id: Identifier
    repo: Identifier | None = None
    """Only contracts to which the repo of this name or id is a party."""
    missing: bool = False
    """Only contracts that are not verified."""
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Identifier | None = None


class MatrixCell(Result):
    """How far one party is with a contract. A repo without a cell is no party.

    `version` is the one that the state is about: an older one if the state is stale. `by` is the
    repo whose verification passed or failed. `awaited` is what the contract waits for from this
    party.
    """

    repo_id: Identifier
    side: Side
    state: CellState
    evidence: Evidence | None = None
    version: int
    since: Timestamp
    by: Identifier | None = None
    awaited: AwaitedKind | None = None


class MatrixContract(Result):
    """A row: a contract, with a cell for each party of its current version."""

    contract_id: Identifier
    name: Identifier
    type: ContractType
    version: int
    status: ContractStatus
    cells: list[MatrixCell]
    verified: Count
    """How many of the cells are verified."""


class MatrixRepo(Result):
    """A column: a repo of the project, or a party that is not known here, which has no `name`.

    `contracts` counts those to which it is a party, `verified` those of them that are verified,
    `awaited` what they wait for from it. They count all contracts of the project, whatever was
    asked for.
    """

    repo_id: Identifier
    name: Identifier | None = None
    role: Identifier | None = None
    agent_id: Identifier | None = None
    contracts: Count
    verified: Count
    awaited: dict[AwaitedKind, Count]


class MatrixTotals(Result):
    """Of all contracts of the project. It is `complete` when there is at least one and all are
    verified. `proven` are those of the verified ones that are so by runners' receipts."""

    complete: bool
    contracts: Count
    verified: Count
    proven: Count
    cells: Count
    verified_cells: Count
    awaited: dict[AwaitedKind, Count]


class ProjectMatrix(Result):
    project_id: Identifier
    name: Identifier
    totals: MatrixTotals
    repos: list[MatrixRepo]
    contracts: list[MatrixContract]
    matching: Count
    """How many contracts there are over all pages that were asked for."""
    next_cursor: Identifier | None = None
