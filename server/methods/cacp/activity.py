"""cacp/activity/list: what has changed, as far as the caller may see it."""

from typing import Any

from schemas.activity import ListActivityParams, ListActivityResult
from schemas.base import iso, present
from server.domain.access import check_project
from server.domain.activity import KINDS, MESSAGE, counts_by_time
from server.domain.agents import identity
from server.domain.errors import Forbidden
from server.methods.base import Context, open_project, page_of, reads
from server.store import attention, changes, contracts, messages
from server.store.changes import Change, ChangeFilter

SCANNED = 20_000
"""Changes that one page looks at, at most: a filter may pass few of very many."""
COUNTED = 1_000
"""Changes that are looked at to be counted by time."""


@reads("cacp/activity/list", ListActivityParams, ListActivityResult, wide=True, reach="own")
def list_(ctx: Context, params: ListActivityParams) -> dict[str, Any]:
    """List the changes that the caller may see, the newest first; by project, repo, agent or kind.
    Of mail it lists, to humans, the messages that are open to them. A page ends after it has
    looked at 20,000 changes: `nextCursor` then continues where it ended. `spans` counts the newest
    changes by time.
    """
    wanted = _wanted(ctx, params)
    newest = changes.newest(ctx.db)
    start = newest + 1 if params.cursor is None else params.cursor
    floor = max(1, start - SCANNED)
    rows = changes.before(ctx.db, wanted, start, floor=floor, limit=params.limit + 1)
    page, more = page_of(rows, params.limit, lambda change: change.seq)
    if not more and floor > 1:
        at = changes.time_of(ctx.db, floor)
        more = {"nextCursor": floor, "lookedBackTo": None if at is None else iso(at)}
    shown = [change for change in page if _may_be_shown(ctx, change)]
    return present({"changes": _shown(ctx, shown), **more, **_spans(ctx, params, wanted, start)})


def _wanted(ctx: Context, params: ListActivityParams) -> ChangeFilter:
    """The changes to list. Raises Forbidden for kinds that the caller may not see, and NotFound or
    Forbidden for a project."""
    caller = ctx.caller
    if params.project_id is not None:
        check_project(caller.projects, params.project_id)
        open_project(ctx, params.project_id)
    kinds = frozenset(params.kinds or (KINDS | {MESSAGE} if caller.human else KINDS))
    if MESSAGE in kinds and not caller.human:
        raise Forbidden(
            "kinds: changes of messages need a human's key; acp/query lists your own mail",
            reason="not_human",
        )
    return ChangeFilter(
        kinds,
        caller.projects,
        params.project_id,
        None if params.agent is None else identity(params.agent),
        params.repo,
    )


def _may_be_shown(ctx: Context, change: Change) -> bool:
    return change.entity != MESSAGE or messages.is_open_to_humans(ctx.db, change.entity_id)


def _spans(
    ctx: Context, params: ListActivityParams, wanted: ChangeFilter, start: int
) -> dict[str, Any]:
    if params.spans is None:
        return {}
    floor = max(1, start - COUNTED)
    rows = changes.before(ctx.db, wanted, start, floor=floor, limit=COUNTED)
    width, spans = counts_by_time([change.at for change in rows], params.spans)
    return {
        "spanSeconds": width // 1_000_000,
        "spans": [{"start": iso(span.start), "count": span.changes} for span in spans],
    }


def _shown(ctx: Context, page: list[Change]) -> list[dict[str, Any]]:
    projects = attention.names_of(
        ctx.db, {change.project_id for change in page if change.project_id}
    )
    contract_names: dict[str, str | None] = {}

    def name_of(change: Change) -> str | None:
        project = projects.get(change.project_id or "")
        if project is None:
            return None
        if change.entity == "project":
            return project.name
        if change.entity_id in project.repos:
            return project.repos[change.entity_id]
        if change.entity not in ("contract", "conflict"):
            return None
        if change.entity_id not in contract_names:
            header = contracts.header_of(ctx.db, project.project_id, change.entity_id)
            contract_names[change.entity_id] = header and header.name
        return contract_names[change.entity_id]

    return [
        present(
            {
                "seq": change.seq,
                "timestamp": iso(change.at),
                "origin": change.origin,
                "actor": change.actor,
                "action": change.action,
                "kind": change.entity,
                "id": change.entity_id,
                "name": name_of(change),
                "projectId": change.project_id,
                "project": (known := projects.get(change.project_id or "")) and known.name,
                "outcome": change.outcome,
            }
        )
        for change in page
    ]
