"""A project as a board: who must act for the feature to go on."""

from server.page.view import Page, PageCall, view

PER_COLUMN = 30
PER_PAGE = 100
"""Contracts of a page that shows one status alone."""
STEPS = 12


@view(
    "feature",
    "/ui/projects/{project_id}",
    title="Board",
    kinds=("project", "repo", "contract", "context", "conflict"),
)
def feature(call: PageCall) -> Page:
    """A project's contracts by status, who must act, what is open, and what was done."""
    project_id, state = call.path["project_id"], call.query.get("state")
    board = call.ask(
        "cacp/project/board",
        projectId=project_id,
        status=state,
        cursor=call.query.get("after"),
        limit=PER_PAGE if state else PER_COLUMN,
    )
    steps = call.ask(
        "cacp/project/timeline",
        projectId=project_id,
        cursor=call.query.get("steps"),
        limit=STEPS,
    )
    return {"board": board, "state": state, "timeline": steps}
