"""cacp/contract/diff: what changed between two versions of a contract, and for whom."""

from typing import Any

from schemas.base import iso, present
from schemas.contract_diff import DiffParams, DiffResult
from schemas.facts import VersionFact
from server.domain import contract as domain
from server.domain.errors import InvalidInput
from server.domain.line_diff import DiffLine, DiffRow, line_diff
from server.domain.semantic_diff import semantic_diff
from server.methods.base import Context, open_project, reads
from server.methods.cacp.contract import no_contract
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
    if contracts.header_of(ctx.db, params.project_id, params.contract_id) is None:
        raise no_contract(params)
    facts = contracts.facts_of(ctx.db, params.contract_id)
    line = {fact.version: fact for fact in [*domain.ancestors_of(facts), domain.current_of(facts)]}
    after = _version(line, "to", params.to or max(line))
    lower = [number for number in line if number < after.version]
    before = _version(line, "from", params.from_ or max(lower, default=after.version))
    return {
        "contractId": params.contract_id,
        "from": _wire_version(before, project),
        "to": _wire_version(after, project),
        **content_difference(before.content, after.content),
    }


def content_difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What a DiffResult says of two contents."""
    semantic, lines = semantic_diff(before, after), line_diff(before, after)
    return {
        "verdict": semantic.verdict,
        "provider": semantic.provider,
        "consumer": semantic.consumer,
        "changes": [present(change._asdict()) for change in semantic.changes],
        "moreChanges": semantic.more,
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
