"""Links to the views of a node's page (`cacp open`, and `--web` of the commands that show what a
view shows)."""

from typing import Annotated
from urllib.parse import quote, urlencode

import typer

PAGES = {
    "attention": "/ui/attention",
    "projects": "/ui/projects",
    "feature": "/ui/projects/{project_id}",
    "contract": "/ui/projects/{project_id}/contracts/{contract_id}",
    "matrix": "/ui/projects/{project_id}/matrix",
    "graph": "/ui/projects/{project_id}/graph",
    "history": "/ui/projects/{project_id}/history",
    "agents": "/ui/agents",
    "mail": "/ui/mail",
    "thread": "/ui/mail/threads/{thread_id}",
    "search": "/ui/search",
    "handoffs": "/ui/handoffs",
    "teams": "/ui/teams",
    "mesh": "/ui/mesh",
    "runs": "/ui/runs",
    "run": "/ui/projects/{project_id}/runs/{run_id}",
    "activity": "/ui/activity",
    "health": "/ui/health",
}
"""The path of each view by its name, as `server.page.view` declares it: the commands import no
server."""

WebOption = Annotated[
    bool,
    typer.Option(
        "--web", help="Print only the link to the view of the node's page that shows this."
    ),
]


def page_path(view: str, /, **places: str) -> str:
    """The path of a view. `places` are the parts of its path; further ones become its query.

    >>> page_path("run", project_id="p 1", run_id="a/b")
    '/ui/projects/p%201/runs/a%2Fb'
    >>> page_path("activity", project="p")
    '/ui/activity?project=p'
    """
    path, query = PAGES[view], dict[str, str]()
    for name, value in places.items():
        place = "{" + name + "}"
        if place in path:
            path = path.replace(place, quote(value, safe=""))
        else:
            query[name] = value
    return f"{path}?{urlencode(query)}" if query else path


def print_link(url: str, view: str, /, **places: str) -> None:
    """Print the link to a view of the node at `url`, and nothing else."""
    typer.echo(url.rstrip("/") + page_path(view, **places))
