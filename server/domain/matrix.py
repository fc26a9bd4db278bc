"""How far each party of each contract is, and what is missing until all of them are verified.

It is decided from short forms of the facts, because a page shows a project of a thousand contracts
at once: `server.store.matrix` reads them without contents.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from schemas.contract import (
    UNSETTLED,
    ContractStatus,
    ContractType,
)
from schemas.matrix import AwaitedKind, CellState
from schemas.verification import PartyRole, VerificationPolicy

StepKind = Literal["response", "round", "implementation", "verification"]


class ContractLine(NamedTuple):
    """A contract and its current version without the content. `since` is the version's stamp;
    `first_author` the repo that wrote version 1."""

    contract_id: str
    type: ContractType
    name: str
    version: int
    status: ContractStatus
    digest: str
    since: int
    author: str
    first_author: str
    parties: tuple[str, ...]
    roles: Mapping[str, PartyRole] | None = None
    """Those that the version names (schemas.facts.VersionFact)."""
    verification: VerificationPolicy | None = None


class PartyStep(NamedTuple):
    """A fact about a version in short. `value` is the action of a response, the status of an
    implementation, or the result of a verification; a round has only its number."""

    kind: StepKind
    version: int
    digest: str
    repo_id: str
    round: int
    value: str
    stamp: int


class DueStep(NamedTuple):
    """What a contract waits for from a repo, and since when (`server.domain.attention`)."""

    kind: AwaitedKind
    since: int


class PartyCell(NamedTuple):
    """How far a party is with a contract: see schemas.matrix.MatrixCell. `since` is a stamp."""

    repo_id: str
    state: CellState
    version: int
    since: int
    by: str | None = None
    awaited: AwaitedKind | None = None


Awaited = Mapping[str, DueStep]
"""What a contract waits for, by repo."""


def cells(contract: ContractLine, steps: Iterable[PartyStep], awaited: Awaited) -> list[PartyCell]:
    """The cell of each party of a contract, in the parties' order. `steps` may be about any of its
    versions."""
    known = _KnownSteps(contract, steps)
    return [
        _cell(contract, known, repo_id, awaited.get(repo_id))
        for repo_id in dict.fromkeys(contract.parties)
    ]


class _KnownSteps:
    """The steps of a contract by what they are about; the latest of each repo."""

    def __init__(self, contract: ContractLine, steps: Iterable[PartyStep]) -> None:
        current = contract.version, contract.digest
        self.outdated: dict[str, PartyStep] = {}
        """Work that is complete, or a verification that passed, of another version."""
        self.responses: dict[str, PartyStep] = {}
        self.works: dict[str, PartyStep] = {}
        self.passed: PartyStep | None = None
        self.failed: PartyStep | None = None
        self.round = max(
            (step.round for step in steps if step.kind == "round" and step[1:3] == current),
            default=1,
        )
        for step in sorted(steps, key=lambda step: (step.stamp, step)):
            if step[1:3] == current:
                self._add(step, contract.parties)
            elif step.value in ("complete", "success"):
                self.outdated[step.repo_id] = step

    def _add(self, step: PartyStep, parties: Sequence[str]) -> None:
        if step.kind == "response":
            self.responses[step.repo_id] = step
        elif step.kind == "implementation" and step.round == self.round:
            self.works[step.repo_id] = step
        elif step.value == "success" and step.round == self.round and step.repo_id in parties:
            self.passed = step
        elif step.value == "failure":
            self.failed = step


def _cell(
    contract: ContractLine, steps: _KnownSteps, repo_id: str, awaited: DueStep | None
) -> PartyCell:
    state, step = _state(contract, steps, repo_id, awaited)
    since = awaited.since if awaited else contract.since
    by = step.repo_id if step is not None and step.kind == "verification" else None
    return PartyCell(
        repo_id,
        state,
        contract.version if step is None else step.version,
        since if step is None else step.stamp,
        by if state in ("verified", "broken") else None,
        awaited and awaited.kind,
    )


def _state(
    contract: ContractLine, steps: _KnownSteps, repo_id: str, awaited: DueStep | None
) -> tuple[CellState, PartyStep | None]:
    """A party's state, and the step that it rests on if there is one."""
    if contract.status == "verified":
        return "verified", steps.passed
    response = steps.responses.get(repo_id)
    outdated = steps.outdated.get(repo_id)
    if contract.status in UNSETTLED:
        if response is not None and response.value != "agree":
            return "objected", response
        if outdated is not None:
            return "stale", outdated
        if awaited is None and (response is not None or repo_id == contract.author):
            return "agreed", response
        return "awaited", None
    work = steps.works.get(repo_id)
    if work is not None and work.value == "complete":
        return "built", work
    if work is not None and work.value == "in_progress":
        return "building", work
    if work is not None or steps.round > 1:
        return "broken", steps.failed or work
    if outdated is not None:
        return "stale", outdated
    return "agreed", response


@dataclass(slots=True)
class MatrixCount:
    """Contracts, or the cells of a repo: how many there are, how many are verified, and what they
    wait for."""

    all: int = 0
    verified: int = 0
    proven: int = 0
    """Of the verified ones, those that are so by receipts."""
    awaited: Counter[AwaitedKind] = field(default_factory=Counter)


@dataclass(slots=True)
class ProjectCounts:
    """The contracts of a project, their cells in all, and those of each repo."""

    contracts: MatrixCount
    cells: MatrixCount
    repos: dict[str, MatrixCount]

    @property
    def is_complete(self) -> bool:
        """Whether there is a contract, and none that is not verified."""
        return 0 < self.contracts.all == self.contracts.verified


def totals(
    contracts: Iterable[ContractLine], awaited: Mapping[str, Awaited], repos: Iterable[str]
) -> ProjectCounts:
    """What is verified and what is missing of all contracts of a project. `awaited` is by contract.
    The repos are the given ones, then parties that are none of them."""
    by_repo = {repo_id: MatrixCount() for repo_id in repos}
    of_contracts, of_cells = MatrixCount(), MatrixCount()
    for contract in contracts:
        verified = contract.status == "verified"
        of_contracts.all += 1
        of_contracts.verified += verified
        of_contracts.proven += verified and contract.verification is not None
        for repo_id in dict.fromkeys(contract.parties):
            count = by_repo.get(repo_id) or by_repo.setdefault(repo_id, MatrixCount())
            count.all += 1
            count.verified += verified
        for repo_id, step in awaited.get(contract.contract_id, {}).items():
            count = by_repo.get(repo_id) or by_repo.setdefault(repo_id, MatrixCount())
            count.awaited[step.kind] += 1
    for count in by_repo.values():
        of_cells.all += count.all
        of_cells.verified += count.verified
        of_cells.awaited += count.awaited
    return ProjectCounts(of_contracts, of_cells, by_repo)
