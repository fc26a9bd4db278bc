"""`cacp activity`: every change that the caller may see, the newest first."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.page_link import WebOption, print_link
from cli.show import project_id_of
from cli.terminal import print_json

Json = dict[str, Any]
PAGE = 200


def activity(
    project: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT", help="Only this project: its name, its id, or the beginning of it."
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only the repos of this name, and what their holders do."
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="AID", help="Only what it did.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND", help="Only contract, repo, context, …; give it once for each."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to show at most.")] = 50,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """List what has changed on a node, the newest first. Changes of mail need a human's key.

    \b
    Examples:
      cacp activity
      cacp activity --project Coupons --repo backend-api
      cacp activity --kind contract --kind conflict --json | jq -r '.[].outcome'
    """
    given = {"repo": repo, "agent": agent, "kinds": kind}
    params: Json = {name: value for name, value in given.items() if value}
    changes: list[Json] = []
    with connected(url, key, oversees=True) as node:
        if project is not None:
            params["projectId"] = project_id_of(node, project)
        if web:
            places = {"project": params.get("projectId"), "repo": repo, "agent": agent}
            places["kind"] = kind[0] if kind else None
            print_link(url, "activity", **{name: place for name, place in places.items() if place})
            return
        while len(changes) < limit:
            wanted = params | {"limit": min(PAGE, limit - len(changes))}
            page = node.call("cacp/activity/list", wanted)
            changes += page["changes"]
            if "nextCursor" not in page:
                break
            params["cursor"] = page["nextCursor"]
    if as_json:
        print_json(changes)
        return
    if not changes:
        typer.echo("Nothing has changed yet.", err=True)
        return
    from cli import views

    out = views.console()
    out.print(views.activity(changes, out.width))
