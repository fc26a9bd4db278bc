"""What needs a person, what has waited too long, and what agents are in time with."""

from schemas.attention_overview import OverviewGroup
from server.domain.errors import InvalidInput
from server.page.view import Page, PageCall, view

PAGE_SIZE = 50
GROUPS: dict[str, OverviewGroup] = {
    "person": "person",
    "overdue": "overdue",
    "in_time": "in_time",
}


@view(
    "attention",
    "/ui/attention",
    title="Attention",
    kinds=("contract", "context", "repo", "project", "conflict", "message", "handoff"),
)
def attention(call: PageCall) -> Page:
    """What needs a person or has waited too long, first what unblocks most agents."""
    show, project = call.query.get("show"), call.query.get("project")
    if show is not None and show not in GROUPS:
        raise InvalidInput(f"show: must be one of {', '.join(GROUPS)}", path="show")
    chosen = {
        "projectId": project,
        "groups": None if show is None else [GROUPS[show]],
        "after": call.query.get("after"),
    }
    listing: Page = call.ask("cacp/attention/overview", **chosen, limit=PAGE_SIZE)
    return {"next": None, **listing, "show": show, "projectId": project}
