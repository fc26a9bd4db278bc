"""What needs a person, what has waited too long, and what agents are in time with."""

from schemas.attention_overview import OverviewGroup
from server.domain.errors import InvalidInput
from server.page.view import Page, PageCall, view

PAGE_SIZE = 50
_ABSENT_OF_ITEM: Page = dict.fromkeys(
    ("projectId", "project", "version", "by", "personReason", "mark", "waiting")
)
_ABSENT_OF_PARTY: Page = dict.fromkeys(("repoId", "repo", "agentId", "lastSeen"))
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
    items = [_whole(item) for item in listing["items"]]
    return {"next": None, **listing, "items": items, "show": show, "projectId": project}


def _whole(item: Page) -> Page:
    """An item in which members that the method leaves out are None: its template reads most of
    them in each row, and a look for what may be missing costs the most there."""
    parties = {
        name: [_ABSENT_OF_PARTY | party for party in item[name]] for name in ("mustAct", "blocks")
    }
    return _ABSENT_OF_ITEM | item | parties
