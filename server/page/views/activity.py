"""Every change that the caller may see."""

from typing import get_args

from schemas.activity import ChangeKind
from server.domain.activity import KINDS, MESSAGE
from server.domain.errors import InvalidInput
from server.page.view import Page, PageCall, view

PER_PAGE = 60
SPANS = 60


@view("activity", "/ui/activity", title="Activity", kinds=KINDS | {MESSAGE})
def activity(call: PageCall) -> Page:
    """Every change, by project, repo, agent and kind; and how many there were in each span."""
    query = call.query
    after = query.get("after")
    if after is not None and not (after.isascii() and after.isdigit() and len(after) < 16):
        raise InvalidInput("after: should be the nextCursor of a page", path="after")
    listed = call.ask(
        "cacp/activity/list",
        projectId=query.get("project"),
        repo=query.get("repo"),
        agent=query.get("agent"),
        kinds=[query["kind"]] if "kind" in query else None,
        cursor=None if after is None else int(after),
        limit=PER_PAGE,
        spans=SPANS,
    )
    # All projects of a node would cost more than the changes.
    names = {
        change["projectId"]: change["project"]
        for change in listed["changes"]
        if "project" in change
    }
    if "project" in query:
        names.setdefault(query["project"], query["project"])
    kinds = [kind for kind in get_args(ChangeKind) if kind != MESSAGE or call.caller.human]
    return {
        **listed,
        "filter": {name: query.get(name) for name in ("project", "repo", "agent", "kind")},
        "kinds": kinds,
        "projects": [{"projectId": project_id, "name": name} for project_id, name in names.items()],
    }
