"""cacp/project/matrix and cacp/project/graph: all contracts of a project at once."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schemas.base import iso, present
from schemas.graph import GraphParams, ProjectGraph
from schemas.matrix import Evidence, MatrixParams, ProjectMatrix
from server.domain.contract_graph import ProvidedContract, Reach, pairs, provided, reach, worst
from server.domain.errors import NotFound
from server.domain.matrix import (
    ContractLine,
    DueStep,
    MatrixCount,
    PartyCell,
    cells,
    totals,
)
from server.domain.sides import roles_of
from server.domain.terms import demands
from server.methods.base import Context, open_project, page_of, reads
from server.store import matrix as stored
from server.store import projects
from server.store.projects import Repo

WORK = ("building", "built", "verified", "stale", "broken")
"""States that rest on evidence."""


@dataclass
class _Project:
    """A project's repos and contracts, as both methods read them."""

    name: str
    repos: dict[str, Repo]
    lines: list[ContractLine]
    awaited: dict[str, dict[str, DueStep]]

    @classmethod
    def read(cls, ctx: Context, project_id: str) -> "_Project":
        """Raises NotFound."""
        name = open_project(ctx, project_id).name
        return cls(
            name,
            {repo.repo_id: repo for repo in projects.repos(ctx.db, project_id)},
            stored.contract_lines(ctx.db, project_id),
            stored.awaited_steps(ctx.db, project_id),
        )

    @cached_property
    def roles(self) -> dict[str, str]:
        return {repo_id: repo.role for repo_id, repo in self.repos.items()}

    def providers_of(self, line: ContractLine) -> list[str]:
        """At least one of the parties."""
        roles = roles_of(line.type, line.parties, line.roles, self.roles, line.first_author)
        provide = [repo_id for repo_id, role in roles.items() if role != "consumer"]
        return provide or list(line.parties)

    def cells_of(
        self, ctx: Context, project_id: str, lines: list[ContractLine]
    ) -> dict[str, list[PartyCell]]:
        """The cells of contracts, by contract."""
        steps = stored.party_steps(ctx.db, project_id, [line.contract_id for line in lines])
        return {
            line.contract_id: cells(
                line, steps.get(line.contract_id, ()), self.awaited.get(line.contract_id, {})
            )
            for line in lines
        }

    def repo_id(self, wanted: str) -> str:
        """The id of the repo or party with this id or name. Raises NotFound."""
        if wanted in self.repos or any(wanted in line.parties for line in self.lines):
            return wanted
        for repo in self.repos.values():
            if repo.name == wanted:
                return repo.repo_id
        names = [repo.name for repo in self.repos.values()]
        raise NotFound(
            f"The project has no repo {wanted}: it has {', '.join(names) or 'none'}",
            kind="repo",
            repos=names,
        )

    def shown_repo(self, repo_id: str) -> dict[str, Any]:
        repo = self.repos.get(repo_id)
        if repo is None:
            return {"repoId": repo_id}
        return present(
            {"repoId": repo_id, "name": repo.name, "role": repo.role, "agentId": repo.agent_id}
        )


@reads("cacp/project/matrix", MatrixParams, ProjectMatrix, wide=True)
def matrix(ctx: Context, params: MatrixParams) -> dict[str, Any]:
    """Return how far each repo is with each contract of a project, what each must do next, and how
    many contracts are verified. `missing` leaves out those that are.
    """
    project = _Project.read(ctx, params.project_id)
    repo_id = None if params.repo is None else project.repo_id(params.repo)
    asked = [
        line
        for line in project.lines
        if (not params.missing or line.status != "verified")
        and (repo_id is None or repo_id in line.parties)
    ]
    later = [line for line in asked if line.contract_id > (params.cursor or "")]
    page, more = page_of(later, params.limit, lambda line: line.contract_id)
    cells_of = project.cells_of(ctx, params.project_id, [*page])
    counted = totals(project.lines, project.awaited, project.repos)
    return {
        "projectId": params.project_id,
        "name": project.name,
        "totals": {
            "complete": counted.is_complete,
            "contracts": counted.contracts.all,
            "verified": counted.contracts.verified,
            "proven": counted.contracts.proven,
            "cells": counted.cells.all,
            "verifiedCells": counted.cells.verified,
            "awaited": dict(counted.cells.awaited),
        },
        "repos": [
            project.shown_repo(repo_id) | _count(count) for repo_id, count in counted.repos.items()
        ],
        "contracts": [
            _row(line, cells_of[line.contract_id], project.providers_of(line)) for line in page
        ],
        "matching": len(asked),
        **more,
    }


def _count(count: MatrixCount) -> dict[str, Any]:
    return {"contracts": count.all, "verified": count.verified, "awaited": dict(count.awaited)}


def _row(line: ContractLine, cells: list[PartyCell], providers: list[str]) -> dict[str, Any]:
    return _contract(line) | {
        "cells": [_cell(line, cell, cell.repo_id in providers) for cell in cells],
        "verified": sum(cell.state == "verified" for cell in cells),
    }


def _contract(line: ContractLine) -> dict[str, Any]:
    return {
        "contractId": line.contract_id,
        "name": line.name,
        "type": line.type,
        "version": line.version,
        "status": line.status,
    }


def _evidence(line: ContractLine, cell: PartyCell, provides: bool) -> Evidence:
    demanded = demands(line.verification)
    proven = "receipt" in demanded and (provides or "both" in demanded)
    return "receipt" if proven and cell.state == "verified" else "word"


def _cell(line: ContractLine, cell: PartyCell, provides: bool) -> dict[str, Any]:
    evidence = _evidence(line, cell, provides) if cell.state in WORK else None
    return present(
        {
            "repoId": cell.repo_id,
            "side": "provider" if provides else "consumer",
            "state": cell.state,
            "evidence": evidence,
            "version": cell.version,
            "since": iso(cell.since),
            "by": cell.by if evidence == "word" else None,
            "awaited": cell.awaited,
        }
    )


@reads("cacp/project/graph", GraphParams, ProjectGraph, wide=True)
def graph(ctx: Context, params: GraphParams) -> dict[str, Any]:
    """Return which repos provide contracts to which, and how far these are. With `contractId`,
    `reach` is what a change of that contract reaches. Who provides a contract follows from the
    repos' roles.
    """
    project = _Project.read(ctx, params.project_id)
    lines = {line.contract_id: line for line in project.lines}
    if params.contract_id is not None and params.contract_id not in lines:
        raise NotFound(
            f"Project {params.project_id} has no contract {params.contract_id}",
            kind="contract",
            contractId=params.contract_id,
        )
    cells_of = project.cells_of(ctx, params.project_id, project.lines)
    contracts = [
        provided(line.contract_id, cells_of[line.contract_id], project.providers_of(line)[0])
        for line in project.lines
    ]
    asked = _asked(project, contracts, params)
    later = [item for item in asked if item.contract_id > (params.cursor or "")]
    page, more = page_of(later, params.limit, lambda item: item.contract_id)
    shown = {
        "projectId": params.project_id,
        "name": project.name,
        "repos": _graph_repos(project, contracts),
        "pairs": _pairs(lines, contracts),
        "contracts": [_provided(lines[item.contract_id], item) for item in page],
        "matching": len(asked),
        **more,
    }
    if params.contract_id is not None:
        by_id = {item.contract_id: item for item in contracts}
        reached = reach(contracts, params.contract_id)
        shown["reach"] = {"contractId": params.contract_id} | _reach(lines, by_id, reached)
    return shown


def _asked(
    project: _Project, contracts: list[ProvidedContract], params: GraphParams
) -> list[ProvidedContract]:
    asked = contracts
    if params.provider is not None:
        provider = project.repo_id(params.provider)
        asked = [item for item in asked if item.provider.repo_id == provider]
    if params.consumer is not None:
        consumer = project.repo_id(params.consumer)
        asked = [item for item in asked if item.is_consumed_by(consumer)]
    if params.repo is not None:
        repo = project.repo_id(params.repo)
        asked = [
            item for item in asked if item.provider.repo_id == repo or item.is_consumed_by(repo)
        ]
    return asked


def _graph_repos(project: _Project, contracts: list[ProvidedContract]) -> list[dict[str, Any]]:
    provides = Counter(item.provider.repo_id for item in contracts)
    consumes = Counter(cell.repo_id for item in contracts for cell in item.consumers)
    return [
        project.shown_repo(repo_id) | {"provides": provides[repo_id], "consumes": consumes[repo_id]}
        for repo_id in dict.fromkeys([*project.repos, *provides, *consumes])
    ]


def _pairs(
    lines: dict[str, ContractLine], contracts: Iterable[ProvidedContract]
) -> list[dict[str, Any]]:
    joined = pairs(contracts)
    made = []
    for pair in sorted(joined, key=lambda pair: (-len(joined[pair]), pair)):
        states = joined[pair]
        only = next(iter(states)) if len(states) == 1 else None
        shown = {
            "providerId": pair.provider_id,
            "consumerId": pair.consumer_id,
            "contracts": len(states),
            "state": worst(states.values()),
            "states": dict(Counter(states.values())),
            "contractId": only,
            "contract": only and lines[only].name,
        }
        made.append(present(shown))
    return made


def _provided(line: ContractLine, item: ProvidedContract) -> dict[str, Any]:
    return _contract(line) | {
        "provider": _graph_party(item.provider),
        "consumers": [_graph_party(cell) for cell in item.consumers],
    }


def _graph_party(cell: PartyCell) -> dict[str, Any]:
    return present({"repoId": cell.repo_id, "state": cell.state, "awaited": cell.awaited})


def _reach(
    lines: dict[str, ContractLine], contracts: dict[str, ProvidedContract], reached: Reach
) -> dict[str, Any]:
    return {
        "contracts": [
            {
                "contractId": id,
                "name": lines[id].name,
                "providerId": contracts[id].provider.repo_id,
                "consumerIds": [cell.repo_id for cell in contracts[id].consumers],
                "steps": steps,
            }
            for id, steps in reached.contracts.items()
        ],
        "repos": [{"repoId": id, "steps": steps} for id, steps in reached.repos.items()],
    }
