"""A project as it was."""

from server.domain.errors import InvalidInput
from server.page.view import Page, PageCall, view


@view(
    "history",
    "/ui/projects/{project_id}/history",
    title="History",
    kinds=("project", "repo", "contract", "context"),
)
def history(call: PageCall) -> Page:
    """A project as it was at a time, and what was done then."""
    change = call.query.get("change")
    if change is not None and not (change.isascii() and change.isdigit() and len(change) < 8):
        raise InvalidInput("change: should be the number of a change", path="change")
    return {
        "state": call.ask(
            "cacp/project/stateAt",
            projectId=call.path["project_id"],
            at=None if change else call.query.get("at"),
            change=None if change is None else int(change),
        )
    }
