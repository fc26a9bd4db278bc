"""cacp/contract/diff and compare: what changed between two versions of a contract, and for whom."""

from dataclasses import replace
from typing import Any

from contracts.changes import ContractComparison
from schemas.base import iso, present
from schemas.contract import ContractType
from schemas.contract_diff import CompareParams, CompareResult, DiffParams, DiffResult
from schemas.facts import VersionFact
from server.domain import contract as domain
from server.domain.authorship import check_sendable
from server.domain.errors import InvalidInput
from server.domain.line_diff import DiffLine, DiffRow, line_diff
from server.methods.base import Context, open_project, reads
from server.methods.cacp import content_reading
from server.methods.cacp.contract import by_name, no_contract
from server.store import contracts
from server.store.projects import Membership


@reads("cacp/contract/diff", DiffParams, DiffResult, wide=True)
def diff(ctx: Context, params: DiffParams) -> dict[str, Any]:
    """Compare two versions of a contract: each change by its path, with whether it breaks what the
    provider or the consumer has built, and the lines beside each other. What can't be decided is
    `unknown`, which is never to be taken as fine. Large contents are compared in part, and the
    result says so.
    """
    project = open_project(ctx, params.project_id)
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    if header is None:
        raise no_contract(params)
    facts = contracts.facts_of(ctx.db, params.contract_id)
    line = {fact.version: fact for fact in domain.line_of(facts)}
    after = _version(line, "to", params.to or max(line))
    lower = [number for number in line if number < after.version]
    before = _version(line, "from", params.from_ or max(lower, default=after.version))
    return {
        "contractId": params.contract_id,
        "from": _wire_version(before, project),
        "to": _wire_version(after, project),
        **content_difference(
            content_reading.compared(ctx.node, header.type, before, after),
            before.content,
            after.content,
        ),
    }


@reads("cacp/contract/compare", CompareParams, CompareResult, wide=True)
def compare(ctx: Context, params: CompareParams) -> dict[str, Any]:
    """Compare two versions of a contract, or a version with a content that nobody has proposed yet:
    what changed, whom it breaks, and which repos it burdens. What can't be decided is `unknown`,
    which is never to be taken as fine.
    """
    from contracts.recognise import dialect_of

    project = open_project(ctx, params.project_id)
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    if header is None:
        raise no_contract(params)
    facts = contracts.facts_of(ctx.db, params.contract_id)
    current = domain.current_of(facts)
    line = {fact.version: fact for fact in domain.line_of(facts)}
    if params.content is None:
        after = _version(line, "to", params.to or current.version)
        lower = [fact for number, fact in line.items() if number < after.version]
    else:
        after = _given(params, current, header.type)
        lower = list(line.values())
    agreed = domain.last_agreed(facts)
    basis = agreed if agreed in lower else (lower[-1] if lower else after)
    before = basis if params.from_ is None else _version(line, "from", params.from_)
    comparison = content_reading.compared(ctx.node, header.type, before, after)
    author = None if params.content is not None else after.repo_id
    roles = domain.roles_in(header.type, facts, current, project.terms.repo_roles)
    burdened = content_reading.concerned(comparison, roles, author)
    return {
        "contractId": params.contract_id,
        "dialect": after.dialect or dialect_of(after.content),
        **({} if params.content is not None else {"version": after.version}),
        "against": before.version,
        "concerns": list(by_name(project, {repo_id: roles[repo_id] for repo_id in burdened})),
        **comparison.wire(),
    }


def _given(params: CompareParams, current: VersionFact, type: ContractType) -> VersionFact:
    """A content that was given, as a version. Raises InvalidInput, as it would if it was."""
    from contracts.recognise import read

    assert params.content is not None
    dialect = params.dialect or current.dialect
    content_reading.check(read(params.content, dialect, type), dialect)
    text = check_sendable(params.content)
    return replace(current, content=params.content, digest=text, dialect=dialect)


def content_difference(
    comparison: ContractComparison, before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Any]:
    """What a DiffResult says of two contents."""
    lines = line_diff(before, after)
    return {
        **comparison.wire(),
        "rows": wire_rows(lines.rows),
        "moreRows": lines.more,
    }


def wire_rows(rows: list[DiffRow]) -> list[dict[str, Any]]:
    return [
        present(
            {
                "kind": row.kind,
                "before": row.before and _wire_line(row.before),
                "after": row.after and _wire_line(row.after),
                "skipped": row.skipped,
            }
        )
        for row in rows
    ]


def _wire_line(line: DiffLine) -> dict[str, Any]:
    parts = [{"text": part.text, "changed": part.changed} for part in line.parts]
    return {"number": line.number, "parts": parts, "cut": line.cut}


def _version(line: dict[int, VersionFact], name: str, number: int) -> VersionFact:
    if number not in line:
        raise InvalidInput(
            f"{name}: the contract has no version {number}; it has {_listed(sorted(line))}",
            path=name,
        )
    return line[number]


def _listed(numbers: list[int]) -> str:
    cut = [*map(str, numbers[:20]), *(["…"] if len(numbers) > 20 else [])]
    return ", ".join(cut)


def _wire_version(fact: VersionFact, project: Membership) -> dict[str, Any]:
    names = {member.repo_id: member.name for member in project.members}
    return present(
        {
            "version": fact.version,
            "proposedBy": fact.repo_id,
            "name": names.get(fact.repo_id),
            "agentId": fact.agent_id,
            "timestamp": iso(fact.stamp),
            "changeNote": fact.note,
        }
    )
