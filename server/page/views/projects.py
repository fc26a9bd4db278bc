"""The projects of the node."""

from server.page.view import Page, PageCall, view

PER_PAGE = 50


@view(
    "projects", "/ui/projects", title="Projects", kinds=("project", "repo", "contract", "context")
)
def projects(call: PageCall) -> Page:
    """The projects, how far each is, and how much waits in it."""
    archived = "archived" in call.query
    listed = call.ask(
        "cacp/project/list",
        summary=True,
        limit=PER_PAGE,
        includeArchived=archived,
        cursor=call.query.get("after"),
    )
    return {**listed, "archived": archived}
