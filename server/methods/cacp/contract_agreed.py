"""cacp/contract/agreed: the contents that hold, each at its last agreed version."""

from collections.abc import Mapping
from typing import Any

from schemas.base import present
from schemas.contract_agreed import AgreedParams, AgreedResult
from server.domain import contract as domain
from server.methods.base import Context, open_project, page_of, reads
from server.store import contracts
from server.store.projects import Membership


@reads("cacp/contract/agreed", AgreedParams, AgreedResult, wide=True)
def agreed(ctx: Context, params: AgreedParams) -> dict[str, Any]:
    """List the last agreed version of each contract of a project, with its content, its digest and
    the side of each party. A contract that was never agreed is left out."""
    project = open_project(ctx, params.project_id)
    rows = contracts.summaries(
        ctx.db,
        params.project_id,
        after=params.cursor or "",
        status=None,
        type=None,
        limit=params.limit + 1,
    )
    page, more = page_of(rows, params.limit, lambda row: row["contractId"])
    listed = (_agreed(ctx, row, project) for row in page)
    return {"contracts": [version for version in listed if version is not None], **more}


def _agreed(ctx: Context, summary: Mapping[str, Any], project: Membership) -> dict[str, Any] | None:
    facts = contracts.facts_of(ctx.db, summary["contractId"])
    version = domain.last_agreed(facts)
    if version is None:
        return None
    members = {member.repo_id: member for member in project.members}
    repo_roles = {repo_id: member.role for repo_id, member in members.items()}
    roles = domain.roles_in(summary["type"], facts, version, repo_roles)
    return present(
        {
            "contractId": summary["contractId"],
            "type": summary["type"],
            "name": summary["name"],
            "version": version.version,
            "digest": version.digest,
            "dialect": version.dialect,
            "content": version.content,
            "parties": [
                present(
                    {
                        "repoId": repo_id,
                        "name": members[repo_id].name if repo_id in members else None,
                        "side": side,
                    }
                )
                for repo_id, side in roles.items()
            ],
            "currentVersion": summary["version"],
            "status": summary["status"],
        }
    )
